"""Errors keep the frames that they passed through alive, with every tensor in them: how to find such errors, and let go of
what they hold."""

from __future__ import annotations

import contextlib
import gc
import inspect
import sys
import traceback
from types import AsyncGeneratorType, CoroutineType, FrameType, GeneratorType, TracebackType
from typing import Any, Final

from gpulint.runtime.probes.frames import chain_of as chain_of

_SUSPENDS: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_LAST = ("last_exc", "last_value", "last_traceback", "last_type")
_RESULT = ("error_before_exec", "error_in_exec")


def frames_of(error: BaseException | None) -> list[FrameType]:
    """The frames that an error and those behind it refer to, without those of a module or a notebook's cell."""
    found: dict[int, FrameType] = {}
    for one in chain_of(error):
        for frame, _ in traceback.walk_tb(one.__traceback__):
            if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
                found[id(frame)] = frame
    return list(found.values())


def empty_frames(error: BaseException | None) -> None:
    """Drop the local variables of all finished frames that an error and those behind it refer to. The traceback can
    still be printed."""
    for frame in frames_of(error):
        if _waits(frame):
            continue
        with contextlib.suppress(RuntimeError):  # it is running, or waits for its next value
            frame.clear()
        # Whoever has read `f_locals` before, as IPython does to print a call's arguments, has left a dict of them on the
        # frame up to Python 3.12. `clear` forgets it; to read it again brings it up to date.
        frame.f_locals  # noqa: B018
    gc.collect(0)


def _waits(frame: FrameType) -> bool:
    """Whether it is that of a generator which waits for its next value: a pytest fixture, say, that handed out an exception it
    had caught. Cleared, it would end there and then, before Python 3.13; since then that is an error."""
    if sys.version_info >= (3, 13) or not frame.f_code.co_flags & _SUSPENDS:
        return False
    return any(
        isinstance(one, (GeneratorType, CoroutineType, AsyncGeneratorType))
        and frame in (getattr(one, name, None) for name in ("gi_frame", "cr_frame", "ag_frame"))
        for one in gc.get_referrers(frame)
    )


# -- errors that an interactive session has stored -----------------------------------------------------------------


def interactive_shell() -> Any:
    """The running IPython shell; None where there is none. Never imports IPython."""
    module = sys.modules.get("IPython")
    ask = getattr(module, "get_ipython", None)
    return ask() if ask is not None else None


def stored_errors() -> list[BaseException]:
    """The errors that the interpreter's prompt or IPython has kept for a debugger, each once."""
    shell = interactive_shell()
    result = getattr(shell, "last_execution_result", None)
    tells = [getattr(sys, name, None) for name in ("last_exc", "last_value")]
    tells += [getattr(result, name, None) for name in _RESULT]
    tells += [getattr(tb, name, None) for tb in _printers(shell) for name in ("evalue", "value")]
    # What never passed through a frame holds none: such is what `forget_errors` leaves in an error's place.
    found = [one for one in tells if isinstance(one, BaseException) and one.__traceback__ is not None]
    return list({id(one): one for one in found}.values())


def forget_errors() -> int:
    """Let go of stored errors and what their frames hold, and of the references to them; their number. A debugger finds nothing
    of them afterwards."""
    errors = stored_errors()
    for error in errors:
        empty_frames(error)
    for name in _LAST:
        if hasattr(sys, name):
            delattr(sys, name)
    shell = interactive_shell()
    result = getattr(shell, "last_execution_result", None)
    for name in _RESULT:
        if getattr(result, name, None) is not None:
            # `success` is read off these: an error of the same kind takes its place, without its traceback.
            error = getattr(result, name)
            setattr(result, name, RuntimeError(f"{type(error).__name__}: {error}"))
    for printer in _printers(shell):
        _forget_debugger(getattr(printer, "pdb", None))
        for name in ("tb", "etb", "evalue", "value", "last_syntax_error"):
            if name in vars(printer):
                setattr(printer, name, None)
    return len(errors)


def _forget_debugger(debugger: Any) -> None:
    """IPython makes its debugger once, and one that was left still refers to frames of the error that it looked at."""
    known = getattr(debugger, "__dict__", {})
    looked_at = [one for one, _ in known.get("stack") or ()]
    for name, value in list(known.items()):
        if isinstance(value, (FrameType, TracebackType)):
            setattr(debugger, name, None)
            looked_at += [value] if isinstance(value, FrameType) else []
    for frame in looked_at:  # since Python 3.12 each module has the frame of its own that was looked at last
        frame.f_globals.get("__pdb_convenience_variables", {}).clear()
    for name, empty in (("stack", []), ("curframe_locals", {}), ("tb_lineno", {})):
        if known.get(name):
            setattr(debugger, name, empty)


def _printers(shell: Any) -> list[Any]:
    """What IPython prints tracebacks with, which keeps the last one."""
    found = (getattr(shell, name, None) for name in ("InteractiveTB", "SyntaxTB", "CustomTB"))
    return [one for one in found if hasattr(one, "__dict__")]
