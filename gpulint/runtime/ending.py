"""Puts the script's end into one clear line, and makes a last look while its frames are still there."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from types import FrameType, TracebackType
from typing import Any, Literal

from gpulint.runtime import running
from gpulint.runtime.frames import function_name
from gpulint.runtime.result import End, Site


def finished(harness: Any) -> End:
    """The script ran to its end by itself."""
    if harness.asked_for_cuda_in_vain:
        return End("no-device", "--device cuda was asked for, and the script never used the GPU", code=0)
    if harness.steps:
        few = (
            ", all of them warm-up (--warmup 0 samples from the first step on)" if not harness.sampled else ""
        )
        said = f"the script ended by itself after {harness.steps} step{'s' * (harness.steps != 1)}{few}"
        return End("finished", said, code=0)
    if not harness.saw_torch:
        return End("no-torch", "the script ended without importing torch", code=0)
    return End(
        "no-steps",
        "the script ended without a step: no optimizer stepped and no module ran twice; "
        "call gpulint.step() once per iteration if its loop has neither, "
        "and note that processes it starts itself are not followed",
        code=0,
    )


def failed(harness: Any, error: BaseException, module: bool) -> int:
    """The script raised, or called sys.exit. Reports it, shows the traceback as Python would, returns the
    exit code."""
    if isinstance(error, SystemExit):
        return _left(harness, error)
    trace = running.without_ours(error.__traceback__)
    text = "".join(traceback.format_exception(type(error), error, trace))
    if trace is None and module and isinstance(error, ImportError):
        harness.report(End("not-started", f"the module could not be run: {error}", text, 1))
    else:
        harness.look_at_end(running.traceback_frames(trace))
        after = f" after {harness.steps} steps" if harness.steps else " before its first step"
        message = f"the script raised {running.one_line(error)}{after}"
        failure = End("raised", message, text, 1, where=_innermost(harness, trace))
        harness.report(harness.excused(message) or failure)
    _show(error, trace)
    return 1


def _left(harness: Any, error: SystemExit) -> int:
    code = error.code
    if code is None or code == 0:
        harness.report(finished(harness))
        return 0
    number = code if isinstance(code, int) else 1
    if not isinstance(code, int):
        print(code, file=sys.stderr)
    after = f" after {harness.steps} steps" if harness.steps else " before its first step"
    said = "" if isinstance(code, int) else f": {' '.join(str(code).split())[:200]}"
    trace = running.without_ours(error.__traceback__)
    harness.look_at_end(running.traceback_frames(trace))
    message = f"the script called sys.exit({number}){after}{said}"
    failure = End("exit", message, code=number, where=_innermost(harness, trace))
    harness.report(harness.excused(message) or failure)
    return number


def _show(error: BaseException, trace: TracebackType | None) -> None:
    hook = sys.excepthook
    try:
        hook(type(error), error.with_traceback(trace), trace)
    except Exception:
        traceback.print_exception(type(error), error, trace)


def cut_short(harness: Any, why: Literal["timeout", "interrupted"]) -> None:
    """The parent has asked for the end. Runs on the channel's thread while the main thread may be stuck
    anywhere."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    user = harness.frames.user_frame(frame)
    where = _site(user)
    stack = "".join(traceback.format_stack(user)) if user is not None else None
    harness.look_at_end(())
    steps = f"after {harness.steps} steps" if harness.steps else "before its first step"
    at = f", at {os.path.basename(where.file)}:{where.line} in {where.function}" if where is not None else ""
    reason = "the time was up" if why == "timeout" else "interrupted"
    harness.report(End(why, f"{reason} {steps}{at}", traceback=stack, where=where))


def _innermost(harness: Any, trace: TracebackType | None) -> Site | None:
    found = None
    while trace is not None:
        if harness.frames.is_user(trace.tb_frame.f_code.co_filename):
            code = trace.tb_frame.f_code
            found = Site(os.path.abspath(code.co_filename), trace.tb_lineno, function_name(code))
        trace = trace.tb_next
    return found


def _site(frame: FrameType | None) -> Site | None:
    if frame is None:
        return None
    return Site(os.path.abspath(frame.f_code.co_filename), frame.f_lineno or 0, function_name(frame.f_code))
