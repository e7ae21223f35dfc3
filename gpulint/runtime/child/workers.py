"""Workers that the script starts with `multiprocessing`, `torch.multiprocessing.spawn` too, are watched as the script itself is.

A forked worker has everything in it already and begins anew. A spawned one is an interpreter that knows nothing of the run: what it
reads first, its preparation data, has a part here whose reading runs `child.py`, before anything of the script.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any, Literal

from gpulint.runtime.child import running
from gpulint.runtime.child.harness import Harness, Stop
from gpulint.runtime.observing.lines import LineCounter
from gpulint.runtime.probes import hooks
from gpulint.runtime.probes.frames import Frames
from gpulint.runtime.record.besides import WorkerContext
from gpulint.runtime.record.channel import ADDRESS, ENOUGH, OPTIONS, TIMEOUT, TOKEN, Channel, connect_to
from gpulint.runtime.record.options import Options
from gpulint.runtime.record.result import UNFOLLOWED
from gpulint.runtime.trying import overlay

CHILD = os.path.abspath(os.path.join(__file__, "..", "child.py"))
ENTERS = "__gpulint_worker__"  # the name under which a worker runs it
_SERVICES = ("torch.utils.data", "multiprocessing.managers")  # whose processes are none of the script's


_harness: Harness  # this process's, or its parent's where it was forked


def follow(harness: Harness) -> None:
    """From now on watch the workers that this process starts, and note where it starts Python in another way."""
    global _harness
    _harness = harness
    running.when_imported("multiprocessing", _watch_starts)
    _notice_pythons(harness)


def enter(number: int) -> None:
    """In a spawned worker, before anything else: watch what it imports. `number` counts those of its parent."""
    overlay.ensure()
    harness = Harness(asked())
    harness.start(number)
    _watch_main(harness.session.lines)
    follow(harness)


class _Entry:
    """A part of the preparation data. To read it is to enter."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return runpy.run_path, (CHILD, {"worker_number": self._number}, ENTERS)


def _watch_starts(multiprocessing: ModuleType) -> None:
    from multiprocessing import process, spawn

    numbers = itertools.count(1)

    def made(prepare: Any) -> Any:
        return lambda name: {**prepare(name), "gpulint": _Entry(next(numbers))}

    def begin(worker: Any, *_: Any, **__: Any) -> None:
        with contextlib.suppress(OSError):  # the parent is gone: so will be this process
            _begin(worker)

    hooks.wrap(spawn, "get_preparation_data", made)
    hooks.around(process.BaseProcess, "_bootstrap", begin)


def _begin(worker: Any) -> None:
    """In the worker, before it runs."""
    global _harness
    forked = _harness.session.done
    if _is_service(worker):
        if not forked:
            _harness.retire()
        _notice_context(_harness.session.frames)
        return
    if forked:
        if _has_lost_gpu(_harness.session.torch):
            return
        _harness = _harness.again()
    connect(_harness, tuple(worker._identity))
    if forked:
        _harness.start()
    worker.run = functools.partial(_run, _harness, worker.run)


def _has_lost_gpu(torch: Any) -> bool:
    """Whether this process was forked from one that uses the GPU: it cannot, and so does not train. Without a driver it has none to
    lose, although torch, once it was asked for GPUs there, says so too."""
    return torch is not None and bool(torch.cuda._is_in_bad_fork()) and torch.cuda.device_count() > 0


def _notice_context(frames: Frames) -> None:
    """Tell the parent where this worker, which should leave the GPU alone, begins to use it."""
    torch = sys.modules.get("torch")

    def tell() -> None:
        site = frames.here(2)
        told = WorkerContext(**site.by_name(), pid=os.getpid()).to_json()
        with contextlib.suppress(OSError, KeyError), connect_to(os.environ[ADDRESS]) as parent:
            parent.sendall(json.dumps({"token": os.environ[TOKEN], "context": told}).encode() + b"\n")

    if torch is not None and not _has_lost_gpu(torch):
        torch.cuda._lazy_call(tell)


def _is_service(worker: Any) -> bool:
    target = getattr(worker, "_target", None)
    return str(getattr(target, "__module__", "")).startswith(_SERVICES)


def _run(harness: Harness, run: Callable[[], None]) -> None:
    try:
        run()
    except Stop:
        pass
    except BaseException as error:
        running.failed_in_worker(harness, error)
        raise
    else:
        harness.report(running.finished(harness))
    finally:
        harness.stop_watching()


def _watch_main(lines: LineCounter) -> None:
    """The main script, which a worker runs as `__mp_main__` by its path, is compiled like the modules it imports: what `runpy` calls
    `compile` then."""
    vars(runpy)["compile"] = lambda source, path, *_: lines.compile(source, path)


# -- what is not followed --------------------------------------------------------------------------------------


def _notice_pythons(harness: Harness) -> None:
    def starts(_: Any, args: Any, *__: Any, **___: Any) -> None:
        frame = _outside_subprocess(sys._getframe(2))  # past the hook's own
        users = frame is not None and harness.session.frames.is_user(frame.f_code.co_filename)
        if frame is not None and users and _is_python(args):
            place = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
            harness.session.note(f"{place} {UNFOLLOWED}")

    hooks.around(subprocess.Popen, "__init__", starts)


def _is_python(args: Any) -> bool:
    words = args.split() if isinstance(args, str) else args if isinstance(args, (list, tuple)) else ()
    return bool(words) and os.path.basename(os.fsdecode(words[0])).startswith("python")


def _outside_subprocess(frame: FrameType | None) -> FrameType | None:
    while frame is not None and frame.f_globals.get("__name__") == subprocess.__name__:
        frame = frame.f_back
    return frame


# -- the line to the parent ----------------------------------------------------------------------------------

_REASONS: dict[str, Literal["timeout", "stopped"]] = {TIMEOUT: "timeout", ENOUGH: "stopped"}


def asked() -> Options:
    """What the parent asks of every process of the run."""
    return Options.from_json(json.loads(os.environ[OPTIONS]))


def connect(harness: Harness, process: tuple[int, ...] = ()) -> None:
    """Send what the harness has to say, as the script's own process or the worker with these numbers, and end this process when the
    parent asks for it."""
    channel = Channel(os.environ[ADDRESS], os.environ[TOKEN], process)
    harness.session.send, harness.session.process = channel.send, process

    def command(word: str) -> None:
        if not harness.session.done:
            running.cut_short(harness, _REASONS.get(word, "interrupted"))
        os._exit(0)

    channel.listen(command, lambda: os._exit(1))
