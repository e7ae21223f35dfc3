"""The parent side: starts the user's interpreter (or torchrun) on the child harness, follows it, ends it,
reads the results.

Imports no torch. What the child says arrives as JSON lines on a socket; its output passes through or is
captured.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gpulint.runtime.parent import processes, source
from gpulint.runtime.parent.processes import Tail
from gpulint.runtime.record import result as measured
from gpulint.runtime.record.besides import WorkerContext
from gpulint.runtime.record.channel import ADDRESS, ENOUGH, INTERRUPTED, OPTIONS, TIMEOUT, TOKEN
from gpulint.runtime.record.options import Options

_IDLE = ("no-steps", "no-torch")  # how a process ends that only starts others


def of_run(
    results: Sequence[measured.RankResult], end: measured.End
) -> tuple[tuple[measured.RankResult, ...], tuple[measured.RankResult, ...]]:
    """The processes that count, in order and numbered, and those that took no step beside them. Workers that train are ranks, in the
    order in which they were made. Without any it is torchrun that numbers them. `end` is how the run has ended."""
    counted = _counted(results)
    others = tuple(result for result in results if not any(result is one for one in counted))
    if end.reason in measured.ENDED_WELL:
        counted = [_excused(result) for result in counted]
    if not any(result.process for result in counted):
        return tuple(sorted(counted, key=lambda result: result.rank)), others
    ordered = sorted(counted, key=lambda result: result.process)
    size = max(len(ordered), *(result.world_size for result in ordered))
    numbered = (replace(result, rank=rank, world_size=size) for rank, result in enumerate(ordered))
    return tuple(numbered), others


def _excused(result: measured.RankResult) -> measured.RankResult:
    if result.end.reason in (*measured.ENDED_WELL, *_IDLE):
        return result
    note = measured.CUT_OFF if result.end.reason == "killed" else measured.LEFT_ALONE
    return replace(result, notes=(*result.notes, note))


def _counted(results: Sequence[measured.RankResult]) -> list[measured.RankResult]:
    """All but the workers that neither stepped nor failed; where workers stepped, also without a starter that did neither."""
    training = any(result.process and result.samples for result in results)
    if training:
        return [result for result in results if result.samples]
    silent = (*measured.ENDED_WELL, *_IDLE, "killed")
    return [one for one in results if one.samples or not one.process or one.end.reason not in silent]


def end_of(results: Sequence[measured.RankResult], number: int) -> measured.End | None:
    """How a run has ended, by the reports of its processes in the order in which they came; None where none says it. `number` of
    processes were there."""
    training = any(result.process and result.samples for result in results)
    stopped = False
    for result in results:
        failed = result.end.reason not in measured.ENDED_WELL
        if failed and not stopped and not (training and result.end.reason in _IDLE):
            return _named(result, results) if number > 1 else result.end
        stopped = stopped or result.end.reason == "stopped"
    counted = _counted(results)
    return next((r.end for r in counted if r.end.reason == "stopped"), counted[0].end if counted else None)


def _named(result: measured.RankResult, results: Sequence[measured.RankResult]) -> measured.End:
    """How a process has ended, with a word of which it is."""
    workers = any(one.process for one in results)
    if workers and not result.process:
        return result.end
    who = f"worker {'.'.join(map(str, result.process))}" if result.process else f"rank {result.rank}"
    return replace(result.end, message=f"{who}: {result.end.message}")


OnProgress = Callable[[measured.Progress], None]

CHILD = os.path.abspath(os.path.join(__file__, "..", "..", "child", "child.py"))
REPORT_GRACE = 20.0  # seconds a child may take for its last look once it was told to end
EXIT_GRACE = 20.0  # seconds a child may take for the script's own clean-up after it has reported
JOIN_GRACE = 10.0  # seconds that a script may go on once the workers that it has started were stopped


@dataclass(frozen=True, slots=True)
class Run(Options):
    """What to run and how, besides what the child is told. `target` is a script, or a module name with `module`.

    `launch` are torchrun's own flags (`--nproc-per-node 2 --nnodes …`); torchrun is used if there are any.
    `timeout` is in seconds, None for no limit. `capture` keeps the last megabyte of output instead of passing
    it through. `named` are functions whose calls are steps, or windows, see `naming`.
    """

    target: str
    arguments: tuple[str, ...] = ()
    python: str = sys.executable
    timeout: float | None = None
    launch: tuple[str, ...] = ()
    capture: bool = False
    cwd: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    def command(self, harness: Sequence[str] = ()) -> tuple[str, ...]:
        """The command line that runs the program as its user would; with `harness`, the one that runs it under that."""
        launched = ("-m", "torch.distributed.run", *self.launch) if self.launch else ()
        as_module = ("-m",) if self.module and not harness else ()
        return (self.python, *launched, *harness, *as_module, self.target, *self.arguments)

    def files(self) -> list[str]:
        """The script, first, and the user's own modules that it imports, as absolute paths; none where there is no such script."""
        script = source.find_target(self.target, self.module, self.cwd)
        path = {**os.environ, **self.environment}.get("PYTHONPATH", "")
        return [] if script is None else source.first_party(script, self.module, self.cwd, path)

    def naming(self, step: str | None, units: Sequence[str]) -> Run:
        """The same, where calls of the function `step` are its steps and those of `units` windows of which many come. Raises
        ValueError for a function that the program does not define, or more than once."""
        if step is None and not units:
            return self
        files = self.files()
        named = [source.function_named(files, name, "unit") for name in units]
        named += [source.function_named(files, step, "step")] if step is not None else []
        return replace(self, named=tuple(named))

    def options(self) -> Options:
        """What the child is told."""
        base = self.cwd or os.getcwd()
        home = base if self.module else os.path.dirname(os.path.realpath(os.path.join(base, self.target)))
        return Options.from_json({**self.to_json(), "home": home})  # read, and so checked


def run(what: Run, on_progress: OnProgress | None = None) -> measured.RunResult:
    """Run the program for its sampled steps and return what was measured.

    Never raises for what the program does: the result's `end` tells. Raises ValueError for options that make
    no sense. Whatever happens, Ctrl-C included, no process of the run is left when this returns.
    """
    if what.steps < 1 or (what.warmup is not None and what.warmup < 0):
        raise ValueError("steps must be at least 1 and warmup at least 0")
    problem = processes.why_not_started(what.python, None if what.module else what.target, what.cwd or "")
    if problem is not None:
        return measured.RunResult(what.command(), measured.End("not-started", problem), 0.0)
    with contextlib.closing(_Listener()) as listener:
        return _Follower(what, listener, on_progress).follow()


def _explained(end: measured.End, what: Run, stdout: str, stderr: str) -> measured.End:
    """The end, with what the captured output says about it: the prompt that nobody saw, a torchrun without
    torch."""
    if what.capture and end.asked:
        prompt = stdout.rpartition("\n")[2].strip()[-200:]
        shown = f": {prompt!r}" if prompt else ""
        hint = "; its output is not shown: answer it with --show-output, or pipe the answers in"
        return replace(end, message=f"{end.message}{shown}{hint}")
    if end.reason == "not-started" and what.launch and "No module named 'torch'" in stderr:
        return replace(end, reason="no-torch", message=measured.NO_TORCH.format(what.python))
    return end


_ENDED = measured.End("killed", "the worker was ended before it could report")


class _Listener:
    """The socket that children connect to. Abstract on Linux: no file, so a full disk does not matter."""

    def __init__(self) -> None:
        self.token = secrets.token_hex(16)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if sys.platform == "linux":
            self.address = f"@gpulint-{secrets.token_hex(12)}"
            self.socket.bind("\0" + self.address[1:])
        else:
            self._folder = tempfile.TemporaryDirectory(prefix="gpulint-", ignore_cleanup_errors=True)
            self.address = os.path.join(self._folder.name, "s")
            self.socket.bind(self.address)
        self.socket.listen(256)

    def close(self) -> None:
        """Be no longer there."""
        self.socket.close()
        if self._folder is not None:
            self._folder.cleanup()


@dataclass(eq=False)
class _Connection:
    """One child's line: bytes so far, and what it has said."""

    socket: socket.socket
    pending: bytes = b""
    trusted: bool = False
    gone: bool = False
    rank: int = 0
    process: tuple[int, ...] = ()  # of a worker
    samples: list[measured.Sample] = field(default_factory=list)
    result: measured.RankResult | None = None


class _Follower:
    """Follows one run from its start to its last process."""

    _process: subprocess.Popen[bytes]

    def __init__(self, what: Run, listener: _Listener, on_progress: OnProgress | None) -> None:
        self._what = what
        self._listener = listener
        self._on_progress = on_progress
        self._run = secrets.token_hex(12)
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener.socket, selectors.EVENT_READ)
        self._connections: list[_Connection] = []
        self._tails: list[Tail] = []
        self._told: str | None = None
        self._contexts: list[WorkerContext] = []
        self._news = 0.0  # when a process came, said something or went
        # As they arrived: the first to fail is the cause, the others follow
        self._order: list[measured.RankResult] = []
        self._begin = time.monotonic()

    def follow(self) -> measured.RunResult:
        try:
            self._start()
        except OSError as error:
            said = f"{self._what.python} could not be started: {error}"
            return self._finish(measured.End("not-started", said))
        try:
            self._watch()
        except KeyboardInterrupt:
            self._tell(INTERRUPTED)
            with contextlib.suppress(KeyboardInterrupt):
                self._watch(time.monotonic() + REPORT_GRACE)
        finally:
            processes.end_all(self._run, self._process.pid)
            self._process.wait()
            for tail in self._tails:
                tail.close()
        self._drain()
        return self._finish(self._end())

    def _start(self) -> None:
        what = self._what
        environment = {**os.environ, **what.environment}
        environment[ADDRESS] = self._listener.address
        environment[TOKEN] = self._listener.token
        environment[OPTIONS] = json.dumps(what.options().to_json())
        environment[processes.RUN] = self._run
        if what.device == "cpu":
            environment["CUDA_VISIBLE_DEVICES"] = ""
        output = subprocess.PIPE if what.capture else None
        self._process = subprocess.Popen(
            what.command((CHILD,)),
            cwd=what.cwd,
            env=environment,
            # A prompt that is captured cannot be answered; what is piped in can be read.
            stdin=subprocess.DEVNULL if what.capture and os.isatty(0) else None,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                self._tails.append(Tail(stream))

    # -- following -------------------------------------------------------------------------------------------

    def _watch(self, until: float | None = None) -> None:
        """Read what the children say until the run is over, one way or another."""
        limit = None if self._what.timeout is None else self._begin + self._what.timeout
        while self._process.poll() is None:
            self._read(0.05)
            now = time.monotonic()
            if until is not None and now > until:
                return
            if until is None and limit is not None and now > limit:
                self._tell(TIMEOUT)
                until = now + REPORT_GRACE
            elif until is None and now > self._news + JOIN_GRACE and self._only_waits():
                self._tell(ENOUGH)
                until = now + REPORT_GRACE
            elif until is None and self._all_reported():
                until = now + EXIT_GRACE

    def _all_reported(self) -> bool:
        """Whether nothing is to come any more: of workers beside a script that trains itself, only if they train too."""
        trusted = [c for c in self._connections if c.trusted]
        trains = any(c.samples for c in trusted if not c.process)
        awaited = [c for c in trusted if not c.process or (not c.gone and (c.samples or not trains))]
        return bool(awaited) and all(c.result is not None for c in awaited)

    def _only_waits(self) -> bool:
        """Whether workers were stopped, and what is left is the script's own process, which has taken no step itself: it may wait
        for what they would have given it."""
        workers = [c for c in self._connections if c.process]
        stopped = any(c.result is not None and c.result.end.reason == "stopped" for c in workers)
        left = (c for c in self._connections if c.trusted and not c.gone and c.result is None)
        return stopped and not any(c.process or c.samples for c in left)

    def _tell(self, word: str) -> None:
        self._told = word
        for one in self._connections:
            with contextlib.suppress(OSError):
                one.socket.sendall(word.encode() + b"\n")

    def _drain(self) -> None:
        """Read what was still on its way when the processes ended."""
        while self._read(0.0):
            pass

    def _read(self, timeout: float) -> bool:
        ready = self._selector.select(timeout)
        for key, _ in ready:
            if key.data is None:
                accepted, _ = self._listener.socket.accept()
                connection = _Connection(accepted)
                self._connections.append(connection)
                self._selector.register(accepted, selectors.EVENT_READ, connection)
            else:
                self._receive(key.data)
        return bool(ready)

    def _receive(self, connection: _Connection) -> None:
        try:
            data = connection.socket.recv(1 << 18)
        except OSError:
            data = b""
        self._news = time.monotonic()
        if not data:
            connection.gone = True
            self._selector.unregister(connection.socket)
            connection.socket.close()
            return
        *lines, connection.pending = (connection.pending + data).split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError, TypeError, KeyError):
                self._message(connection, json.loads(line))

    def _message(self, connection: _Connection, message: dict[str, Any]) -> None:
        if message.get("token") == self._listener.token and "context" in message:
            self._contexts.append(WorkerContext.from_json(message["context"]))
        elif message.get("token") == self._listener.token:
            connection.trusted = True
            connection.process = tuple(message.get("process", ()))
        elif not connection.trusted:
            return
        elif "progress" in message:
            progress = measured.Progress.from_json(message["progress"])
            connection.rank = progress.rank
            connection.samples.append(progress.sample)
            if self._on_progress is not None:
                self._on_progress(progress)
        elif "result" in message:
            connection.result = measured.RankResult.from_json(message["result"])
            self._order.append(connection.result)

    # -- the end ---------------------------------------------------------------------------------------------

    def _finish(self, end: measured.End) -> measured.RunResult:
        self._selector.close()
        for connection in self._connections:
            connection.socket.close()
        ranks, others = of_run([self._result_of(c, end) for c in self._connections if c.trusted], end)
        stdout, stderr = (tail.text() for tail in self._tails) if self._tails else (None, None)
        end = _explained(end, self._what, stdout or "", stderr or "")
        took, contexts = time.monotonic() - self._begin, tuple(self._contexts)
        return measured.RunResult(self._what.command(), end, took, ranks, stdout, stderr, others, contexts)

    def _result_of(self, connection: _Connection, end: measured.End) -> measured.RankResult:
        """What a child has reported; of one that died before it could, the samples it sent on its way."""
        if connection.result is not None:
            return connection.result
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        environment = measured.Environment("", self._what.python, sys.platform, now)
        end = _ENDED if connection.process else end
        samples, process = tuple(connection.samples), connection.process
        return measured.RankResult(connection.rank, 1, environment, end, samples=samples, process=process)

    def _end(self) -> measured.End:
        results = self._order
        silent = [c for c in self._connections if c.trusted and c.result is None and not c.process]
        known = end_of(results, len(results) + len(silent))
        if known is not None and known.reason not in measured.ENDED_WELL:
            return known
        if self._told in (TIMEOUT, INTERRUPTED) and (silent or known is None):
            word = "the time was up" if self._told == TIMEOUT else "interrupted"
            reason: measured.EndReason = "timeout" if self._told == TIMEOUT else "interrupted"
            said = f"{word}{self._progress_so_far()}; the process did not answer and was killed"
            return measured.End(reason, said)
        if known is not None and (not silent or self._told == ENOUGH):
            return known
        return self._died(self._process.returncode, silent)

    def _progress_so_far(self) -> str:
        samples = max((c.samples for c in self._connections), key=len, default=[])
        counts = measured.count_steps(samples)
        return f" after {measured.said_steps(counts)}" if samples else " before the first step"

    def _died(self, code: int, silent: list[_Connection]) -> measured.End:
        """The process ended without a report."""
        so_far = self._progress_so_far()
        if not any(c.trusted for c in self._connections):
            what = "torchrun" if self._what.launch else f"the interpreter {self._what.python}"
            said = f"{what} ended with code {code} before the script began"
            return measured.End("not-started", said, code=code)
        if code < 0:
            name = f"signal {-code}"
            with contextlib.suppress(ValueError):
                name = signal.Signals(-code).name
            hint = " (out of memory on the host?)" if -code == signal.SIGKILL else ""
            return measured.End("killed", f"the process was killed by {name}{hint}{so_far}", signal=-code)
        said = f"the process ended at once (os._exit) with code {code}{so_far}"
        return measured.End("killed", said, code=code)
