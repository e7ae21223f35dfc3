"""Runs the user's script or module as `__main__`, as the interpreter itself would."""

from __future__ import annotations

import importlib.machinery
import os
import runpy
import sys
import types
from collections.abc import Callable
from types import CodeType
from typing import Any

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


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
    with open(path, "rb") as source:
        code = compiler(source.read(), path)
    exec(code, main.__dict__)


def without_ours(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """The traceback from the first frame on that is neither gpulint's nor runpy's."""
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not (file.startswith(_OURS) or "runpy" in file):
            return traceback
        traceback = traceback.tb_next
    return None


def traceback_frames(traceback: types.TracebackType | None) -> tuple[types.FrameType, ...]:
    """The frames of a traceback, outermost first."""
    found: list[types.FrameType] = []
    while traceback is not None:
        found.append(traceback.tb_frame)
        traceback = traceback.tb_next
    return tuple(found)


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
