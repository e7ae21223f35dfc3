"""Puts the script's end into one clear line, and makes a last look while its frames are still there."""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
import traceback
from types import TracebackType
from typing import Any, Literal

from gpulint.runtime.child import running
from gpulint.runtime.probes.frames import site_in
from gpulint.runtime.record.result import NO_TORCH, End, Site, never_used_gpu, said_steps

_ASKED = "the script asked for input"
_ALLOCATOR = ("allocator config", "allocator backend", "allocator setting")  # what torch's refusals speak of
# What RuntimeErrors of torch say where memory is wanting: on the host, and on a GPU before there was a class for it.
_NO_MEMORY = ("can't allocate memory", "CUDA out of memory")
_NO_INPUT = "EOF when reading a line"  # what `input()` says where there is none


def finished(harness: Any) -> End:
    """The script ran to its end by itself."""
    harness.ended()
    if harness.session.asked_for_cuda_in_vain:
        return End("no-device", never_used_gpu(harness.session.options.limited), code=0)
    if harness.session.steps:
        few = ", all of them warm-up (--warmup 0 samples from the first step on)"
        few = "" if harness.session.sampled else few
        return End("finished", f"the script ended by itself{_so_far(harness)}{few}", code=0)
    if harness.session.torch is None:
        why = "" if _has_torch() else f"; {NO_TORCH.format(sys.executable)}"
        return End("no-torch", f"the script ended without importing torch{why}", code=0)
    return End(
        "no-steps",
        "the script ended without a step: no optimizer stepped and no module ran twice; "
        "call gpulint.step() once per iteration if its loop has neither, "
        "and note that of the processes it starts itself only those of multiprocessing are followed",
        code=0,
    )


def failed(harness: Any, error: BaseException, module: bool) -> int:
    """The script raised, or called sys.exit. Reports it, shows the traceback as Python would, returns the
    exit code."""
    if isinstance(error, SystemExit):
        if error.code is not None and not isinstance(error.code, int):
            print(error.code, file=sys.stderr)
        return _left(harness, error)
    trace = running.strip_ours(error)
    lacking = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    if lacking.partition(".")[0] == "torch" and not _has_torch():
        where = _innermost(harness, trace)
        harness.report(End("no-torch", NO_TORCH.format(sys.executable), code=1, where=where))
        return 1
    if trace is None and module and isinstance(error, ImportError):
        text = "".join(traceback.format_exception(type(error), error, trace))
        harness.report(End("not-started", f"the module could not be run: {error}", text, 1))
    else:
        _raised(harness, error, trace)
    _show(error, trace)
    return 1


def failed_in_worker(harness: Any, error: BaseException) -> None:
    """A worker of the script's raised, or called sys.exit. Reports it; the rest is the concern of who started it."""
    cause = error.__context__ if isinstance(error, SystemExit) and error.code else None
    if isinstance(cause, Exception):  # torch.multiprocessing passes it on, and leaves
        error = cause
    if isinstance(error, SystemExit):
        _left(harness, error)
    else:
        _raised(harness, error, running.strip_ours(error))


def _raised(harness: Any, error: BaseException, trace: TracebackType | None) -> None:
    text = "".join(traceback.format_exception(type(error), error, trace))
    asked = isinstance(error, EOFError) and str(error) == _NO_INPUT
    what = _ASKED if asked else f"the script raised {running.one_line(error)}"
    message = f"{what}{_so_far(harness)}{', and there was none' if asked else ''}"
    where, refusal = _innermost(harness, trace), _refusal(running.one_line(error).partition(": ")[2])
    exhausted = _is_out_of_memory(error)
    _report(harness, trace, End("raised", message, text, 1, None, where, asked, refusal, exhausted))


def _report(harness: Any, trace: TracebackType | None, failure: End) -> None:
    """A failure, while its traceback holds the script's frames: unless the script is not to blame."""
    harness.looks.look_at_end(running.traceback_frames(trace))
    harness.report(harness.excused(failure.message) or failure)


def _is_out_of_memory(error: BaseException) -> bool:
    """Whether there was no memory left, on the GPU or on the host."""
    torch = sys.modules.get("torch")
    kinds = tuple(filter(None, (MemoryError, getattr(torch, "OutOfMemoryError", None))))
    said = isinstance(error, RuntimeError) and any(words in str(error) for words in _NO_MEMORY)
    return isinstance(error, kinds) or said


def _refusal(said: str) -> str:
    """The sentence in which torch says that it does not take an allocator setting; empty where that is not what went
    wrong. Nothing but its words tells."""
    for sentence in said.split(". "):
        if any(words in sentence.lower() for words in _ALLOCATOR):
            return sentence.strip().removesuffix(".")
    return ""


def _so_far(harness: Any) -> str:
    session = harness.session
    return f" after {said_steps(session.counts)}" if session.steps else " before its first step"


def _has_torch() -> bool:
    try:
        return importlib.util.find_spec("torch") is not None
    except (ImportError, ValueError):
        return False


def _left(harness: Any, error: SystemExit) -> int:
    code = error.code
    if code is None or code == 0:
        harness.report(finished(harness))
        return 0
    number = code if isinstance(code, int) else 1
    said = "" if isinstance(code, int) else f": {' '.join(str(code).split())[:200]}"
    trace = running.strip_ours(error)
    message = f"the script called sys.exit({number}){_so_far(harness)}{said}"
    where, refusal = _innermost(harness, trace), _refusal(said[2:])
    _report(harness, trace, End("exit", message, code=number, where=where, refusal=refusal))
    return number


def _show(error: BaseException, trace: TracebackType | None) -> None:
    hook = sys.excepthook
    try:
        hook(type(error), error.with_traceback(trace), trace)
    except Exception:
        traceback.print_exception(type(error), error, trace)


def cut_short(harness: Any, why: Literal["timeout", "interrupted", "stopped"]) -> None:
    """The parent has asked for the end. Runs on the channel's thread while the main thread may be stuck
    anywhere."""
    if why == "stopped":
        harness.report(End("stopped", "stopped when its workers were"))
        return
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    user = harness.session.frames.user_frame(frame)
    where = site_in(user.f_code, user.f_lineno or 0) if user is not None else None
    stack = running.stack_text(user) if user is not None else None
    harness.looks.look_at_end(())
    at = f", at {os.path.basename(where.file)}:{where.line} in {where.function}" if where is not None else ""
    reason = "the time was up" if why == "timeout" else "interrupted"
    harness.report(End(why, f"{reason}{_so_far(harness)}{at}", traceback=stack, where=where))


def _innermost(harness: Any, trace: TracebackType | None) -> Site | None:
    found = None
    while trace is not None:
        if harness.session.frames.is_user(trace.tb_frame.f_code.co_filename):
            found = site_in(trace.tb_frame.f_code, trace.tb_lineno)
        trace = trace.tb_next
    return found
