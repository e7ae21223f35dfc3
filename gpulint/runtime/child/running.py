"""Runs the user's script or module as `__main__`, as the interpreter itself would."""

from __future__ import annotations

import importlib.machinery
import io
import os
import runpy
import sys
import traceback
import types
from collections.abc import Callable
from types import CodeType
from typing import Any

from gpulint.runtime.probes.frames import chain_of

_OURS = os.path.abspath(os.path.join(__file__, "..", "..", "..")) + os.sep


def prepare(target: str, arguments: list[str], module: bool) -> None:
    """Set `sys.argv` and `sys.path[0]` as `python TARGET ARGS` or `python -m TARGET ARGS` does.

    The interpreter was started on gpulint's own file, so `sys.path[0]` is gpulint's folder, unless paths are
    safe (-P).
    """
    first = os.getcwd() if module else os.path.dirname(os.path.realpath(target))
    if os.path.isdir(target) and not module:
        first = target
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = first
    sys.argv = [target, *arguments]


def run(target: str, module: bool, compiler: Callable[[bytes, str], CodeType]) -> None:
    """Execute the program; `compiler` makes code of a script's source and path. Whatever the program raises,
    SystemExit too, comes out as it is."""
    if module:
        runpy.run_module(target, run_name="__main__", alter_sys=True)
    elif os.path.isdir(target) or target.endswith((".zip", ".pyz")):
        runpy.run_path(target, run_name="__main__")
    else:
        _run_script(target, compiler)


def _run_script(target: str, compiler: Callable[[bytes, str], CodeType]) -> None:
    path = os.path.abspath(target)
    main = types.ModuleType("__main__")
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    main.__dict__.update(
        __file__=path,
        __builtins__=__builtins__,
        __loader__=loader,
        __package__=None,
        __spec__=None,
        __cached__=None,
    )
    sys.modules["__main__"] = main
    with io.open_code(path) as source:
        code = compiler(source.read(), path)
    exec(code, main.__dict__)


def is_ours(file: str) -> bool:
    """Whether code from this file is gpulint's, or what starts the program for it."""
    return file.startswith(_OURS) or file == "<frozen runpy>" or file == runpy.__file__


def without_ours(trace: types.TracebackType | None) -> types.TracebackType | None:
    """The traceback without the frames of gpulint and runpy: those that start the program, and those of the watchers
    that stand between two of its own."""
    kept = [one for one in _links(trace) if not is_ours(one.tb_frame.f_code.co_filename)]
    built: types.TracebackType | None = None
    for one in reversed(kept):
        built = types.TracebackType(built, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return built


def strip_ours(error: BaseException) -> types.TracebackType | None:
    """Takes gpulint's frames out of the tracebacks of an exception and of those that led to it; returns its own."""
    for one in chain_of(error):
        one.__traceback__ = without_ours(one.__traceback__)
    return error.__traceback__


def stack_text(frame: types.FrameType) -> str:
    """Where a frame stands, as a traceback says it, without gpulint's frames."""
    frames = [(one, line) for one, line in traceback.walk_stack(frame) if not is_ours(one.f_code.co_filename)]
    summary = traceback.StackSummary.extract(iter(reversed(frames)))
    return "".join(["Traceback (most recent call last):\n", *summary.format()])


def _links(trace: types.TracebackType | None) -> list[types.TracebackType]:
    """The links of a traceback, outermost first."""
    found: list[types.TracebackType] = []
    while trace is not None:
        found.append(trace)
        trace = trace.tb_next
    return found


def traceback_frames(trace: types.TracebackType | None) -> tuple[types.FrameType, ...]:
    """The frames of a traceback, outermost first."""
    return tuple(one.tb_frame for one in _links(trace))


def one_line(error: BaseException) -> str:
    """`ValueError: what it says`, on one line of at most 300 characters."""
    said: Any = ""
    try:
        said = str(error)
    except Exception:
        said = "<no message>"
    first = " ".join(said.split())
    text = f"{type(error).__name__}: {first}" if first else type(error).__name__
    return text if len(text) <= 300 else text[:297] + "..."
