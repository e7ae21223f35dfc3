"""`gpulint run`: starts a program with the right allocator variable and passes signals and exit status through."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpulint.memory import alloc_conf
from gpulint.operator import agent

_SIGNALS: Final = "SIGTERM SIGINT SIGHUP SIGQUIT SIGUSR1 SIGUSR2 SIGALRM".split()
PASSED_ON: Final = tuple(
    getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)
)  # not all on Windows
_PR_SET_PDEATHSIG: Final = 1
_SENT_BY_A_PROCESS: Final = 0  # si_code SI_USER and below; above it the kernel speaks, for the terminal
# The number of a signal, and when it came (seconds of the monotonic clock)
_NOTE: Final = struct.Struct("=Bd")
_SAME: Final = 0.5  # signals to a group reach its processes within this many seconds of each other
_PATIENCE: Final = 0.1


Setting = tuple[str, str]  # a variable and its value


class CannotStart(RuntimeError):
    """The program cannot be started; the message says why. `status` is what a shell would exit with."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Ended:
    """How the program ended: exactly one of `code` and `signal` is set. `folder` holds what its processes noted;
    None where it could not be made, for the reason in `trouble`. `allocator` is the variable that was set, and to what."""

    code: int | None
    signal: int | None
    began: float
    seconds: float
    folder: Path | None
    trouble: str = ""
    allocator: Setting | None = None


# -- the environment -------------------------------------------------------------------------------------------


def interpreter_of(command: Sequence[str]) -> str | None:
    """The Python that a command line will run: `python`, `env X=1 python`, or a script such as torchrun whose
    first line names it. None where it cannot be told."""
    for word in command:
        path = shutil.which(word)
        for name in (word, *_shebang(path)) if path is not None else ():
            if Path(name).name.startswith("python"):
                return shutil.which(name)
    return None


def _shebang(path: str) -> list[str]:
    """The words of a script's first line that name what runs it; none of other files."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        first = file.readline(512)
        if first.startswith(b"#!"):
            return first[2:].decode(errors="replace").split()
    return []


def torch_version_of(interpreter: str | None) -> str | None:
    """The version of torch that an interpreter has, without importing it; None where it has none."""
    if interpreter is None:
        return None
    code = "import importlib.metadata as m; print(m.version('torch'))"
    try:
        done = subprocess.run(
            [interpreter, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = done.stdout.strip().splitlines()[-1:] if done.returncode == 0 else []
    return version[0] if version else None


def allocator_environment(wanted: str, version: str | None, environment: Mapping[str, str]) -> Setting | None:
    """The variable and its value for `--alloc-conf wanted`; None where nothing is to be set.

    "auto" adds what measurements recommend to what the environment says already, which wins; any other text is
    set as it is. Raises ValueError for text that is not of the allocator's form, or that this torch refuses.
    """
    variable = alloc_conf.variable_for(version)
    if wanted != "auto":
        if refused := alloc_conf.refusal(wanted, version):
            raise ValueError(f"{refused} (GPU604)")
        return variable, alloc_conf.render(alloc_conf.parse(wanted))
    merged = alloc_conf.automatic(version, sys.platform) | alloc_conf.in_environment(environment)
    return (variable, alloc_conf.render(merged)) if merged else None


def doubts(environment: Mapping[str, str], allocator: Setting | None) -> Iterator[str]:
    """What is to be said before a program starts: against its allocator settings, and where `CUDA_VISIBLE_DEVICES` is no list of
    cards, as a fraction is none."""
    if allocator is not None:
        against = alloc_conf.warnings_for(alloc_conf.parse(allocator[1]))
        yield from (f"--alloc-conf: {text}" for text in against)
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and not alloc_conf.lists_cards(visible):
        yield alloc_conf.not_a_limit(visible)


def child_environment(
    environment: Mapping[str, str], folder: Path | None, interval: float, allocator: Setting | None
) -> dict[str, str]:
    """The program's environment: the recording agent on PYTHONPATH, and the allocator variable under one name."""
    made = dict(environment)
    if allocator is not None:
        made.pop(alloc_conf.OLD, None)
        made.pop(alloc_conf.NEW, None)
        made[allocator[0]] = allocator[1]
    if folder is None:
        return made
    made[agent.FOLDER] = str(folder)
    made[agent.INTERVAL] = str(interval)
    made[agent.LIBRARY] = str(Path(__file__).resolve().parents[2])
    made["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, [environment.get("PYTHONPATH")])])
    return made


# -- running ---------------------------------------------------------------------------------------------------


def launch(command: Sequence[str], allocator: Setting | None, interval: float = 0.2) -> Ended:
    """Run a program to its end, in the same process group and on the same terminal.

    Signals that reach only this process are passed on; those that the terminal or somebody sends to the whole
    group reach the program by themselves. If this process is killed, so is the program. Raises CannotStart.
    """
    folder, trouble = _agents_folder()
    environment = child_environment(os.environ, folder, interval, allocator)
    began = time.time()
    try:
        with signals_held() as witness:
            code = wait(_start(command, environment), witness)
    except CannotStart:
        remove(folder)
        raise
    return Ended(
        code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        began=began,
        seconds=time.time() - began,
        folder=folder,
        trouble=trouble,
        allocator=allocator,
    )


def _agents_folder() -> tuple[Path | None, str]:
    """A folder with the agent in it; none, and why, where the disk is full: the program runs all the same."""
    folder = None
    try:
        folder = Path(tempfile.mkdtemp(prefix="gpulint-run-"))
        shutil.copyfile(agent.__file__, folder / "sitecustomize.py")
    except OSError as error:
        remove(folder)
        return None, error.strerror or str(error)
    return folder, ""


def remove(folder: Path | None) -> None:
    """Remove what the program's processes noted."""
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _start(command: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(list(command), env=environment, preexec_fn=before_exec())
    except FileNotFoundError as error:
        script = command[0].endswith(".py") and os.path.isfile(command[0])
        hint = f"; a script needs its interpreter: gpulint run python {command[0]}" if script else ""
        raise CannotStart(f"{command[0]}: command not found{hint}", 127) from error
    except OSError as error:
        raise CannotStart(f"{command[0]} cannot be started: {error.strerror}", 126) from error


def leave_as(ended: Ended) -> int:
    """The status to exit with; does not return where the program died of a signal: this process dies of it too."""
    if ended.signal is None:
        return ended.code or 0
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        # The program has left its core dump, if any; ours would say nothing.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, ValueError):
        signal.signal(ended.signal, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [ended.signal])
    os.kill(os.getpid(), ended.signal)
    time.sleep(1)
    return 128 + ended.signal


# -- signals that reach this process, once each, and only where the program has not got them already ---------------


def die_with_parent() -> Callable[[], None]:
    """A function for the child side of a fork: the kernel kills the child when its parent ends. Everything is
    looked up before the fork. Does nothing where there is no such thing (macOS)."""
    library = ctypes.CDLL(None) if sys.platform == "linux" else None

    def arrange() -> None:
        if library is not None:
            library.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)

    return arrange


def before_exec() -> Callable[[], None]:
    """What the child does before it becomes the program: it gets no blocked signals, and dies with its parent."""
    unblock, held, arrange = signal.pthread_sigmask, (*PASSED_ON, signal.SIGCHLD), die_with_parent()

    def prepare() -> None:
        unblock(signal.SIG_UNBLOCK, held)
        arrange()

    return prepare


@contextlib.contextmanager
def signals_held() -> Iterator[Witness | None]:
    """Hold signals back so that they can be taken one by one with their origin. Gives the witness, None where the
    system cannot tell the origin (macOS)."""
    held = (*PASSED_ON, signal.SIGCHLD)
    # A disposition of "ignore" would discard SIGCHLD before it can be waited for.
    earlier = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    witness = Witness() if hasattr(signal, "sigwaitinfo") else None
    try:
        yield witness
    finally:
        if witness is not None:
            witness.end()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGCHLD, earlier or signal.SIG_DFL)


def wait(child: subprocess.Popen[bytes], witness: Witness | None) -> int:
    """The program's return code, negative for a signal; passes signals on until then."""
    if witness is None:
        return _wait_with_handlers(child)
    while True:
        code = child.poll()
        if code is not None:
            return code
        got = signal.sigtimedwait((*PASSED_ON, signal.SIGCHLD), 5.0)
        if got is None or got.si_signo == signal.SIGCHLD:
            continue
        if got.si_code > _SENT_BY_A_PROCESS or witness.saw(got.si_signo):
            continue
        with contextlib.suppress(ProcessLookupError):
            child.send_signal(got.si_signo)


class Witness:
    """A second process of the group that notes which signals reach it: those reach the program as well, and
    passing them on would deliver them twice."""

    def __init__(self) -> None:
        arrange = die_with_parent()
        # Above the standard streams, of which one may be closed.
        self._pipe, writing = (_moved_up(end) for end in os.pipe())
        self._seen: list[tuple[int, float]] = []
        self._pid = os.fork()
        if self._pid == 0:
            try:
                arrange()
                _note(writing, self._pipe)
            finally:
                os._exit(0)
        os.close(writing)

    def saw(self, number: int) -> bool:
        """Whether a signal that has just come here has reached the whole group."""
        now = time.monotonic()
        while True:
            for record in self._seen:
                if record[0] == number and abs(record[1] - now) < _SAME:
                    self._seen.remove(record)
                    return True
            left = now + _PATIENCE - time.monotonic()
            if left <= 0 or not select.select([self._pipe], [], [], left)[0]:
                # Signals of the terminal are noted as well, and never asked for.
                self._seen = [record for record in self._seen if abs(record[1] - now) < _SAME]
                return False
            data = os.read(self._pipe, 64 * _NOTE.size)  # notes are written whole, and read whole
            self._seen += [(int(n), float(when)) for n, when in _NOTE.iter_unpack(data)]

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)
        os.close(self._pipe)


def _moved_up(end: int) -> int:
    if end > 2:
        return end
    moved = fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(end)
    return moved


def _note(writing: int, reading: int) -> None:
    """The witness's life."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    os.close(reading)
    while True:
        number = signal.sigwaitinfo(PASSED_ON).si_signo
        os.write(writing, _NOTE.pack(number, time.monotonic()))


def _wait_with_handlers(child: subprocess.Popen[bytes]) -> int:
    """Where signals cannot be taken with their origin (macOS): pass on all but those of the terminal."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    at_terminal = sys.stdin is not None and sys.stdin.isatty()
    ignored = (signal.SIGINT, signal.SIGQUIT) if at_terminal else ()

    def pass_on(got: int, _: object) -> None:
        child.send_signal(got)

    before = {n: signal.signal(n, signal.SIG_IGN if n in ignored else pass_on) for n in PASSED_ON}
    try:
        return child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
