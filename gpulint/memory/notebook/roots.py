"""Where a notebook can hold something: its variables, what IPython keeps of results, and the last error."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FrameType, ModuleType
from typing import Any

from gpulint.memory.errors import chain_of, frames_of, stored_errors

_RESULTS = re.compile(r"_{1,3}|_[0-9]+")
_SHOWN = ("_", "__", "___")
RECORD = "IPython's record of the last cell"
_LIBRARIES = ("IPython", "ipykernel", "asyncio", "tornado")


@dataclass(frozen=True, slots=True)
class Root:
    """A place that holds `value`. `name` is what a reader of the notebook would call it; `is_result` of what IPython keeps by
    itself."""

    name: str
    value: Any
    is_result: bool = False


def roots(shell: Any) -> Iterator[Root]:
    """Every place, the user's own variables first."""
    yield from _variables(shell)
    yield from results(shell)
    for error in stored_errors():
        yield from _traceback(shell, error)


def _variables(shell: Any) -> Iterator[Root]:
    hidden = shell.user_ns_hidden
    for name, value in list(shell.user_ns.items()):
        ours = name in hidden and hidden[name] is value  # put there by IPython, and not overwritten since
        if not ours and not isinstance(value, ModuleType) and not _RESULTS.fullmatch(name):
            if name not in ("In", "Out", "_ih", "_oh", "_dh", "_exit_code", "__builtins__"):
                yield Root(f"`{name}`", value)


def results(shell: Any) -> Iterator[Root]:
    """`Out[n]`, `_`, `__`, `___`: results that were shown stay until they are deleted there."""
    for number, value in list(shell.user_ns.get("_oh", {}).items()):
        yield Root(f"`Out[{number}]`", value, True)
    for name in _SHOWN:
        # IPython's own copy stays where a program uses the name
        for names in (shell.user_ns, shell.user_ns_hidden):
            if name in names:
                yield Root(f"`{name}`", names[name], True)
    for name, value in list(shell.user_ns.items()):
        if re.fullmatch(r"_[0-9]+", name):
            yield Root(f"`{name}`", value, True)
    result = getattr(shell.last_execution_result, "result", None)
    if result is not None:
        yield Root(RECORD, result, True)


def forget_results(shell: Any) -> None:
    """Delete what IPython keeps of shown results, as `%reset out` does, and the copy of `_` that this leaves behind."""
    hook, hidden = shell.displayhook, shell.user_ns_hidden
    if hook.do_full_cache:
        hook.flush()
    for name in _SHOWN:
        setattr(hook, name, "")
        if name in hidden:
            if shell.user_ns.get(name) is hidden[name]:
                shell.user_ns[name] = ""
            hidden[name] = shell.user_ns.get(name, "")
    if shell.last_execution_result is not None:
        shell.last_execution_result.result = None


def _traceback(shell: Any, error: BaseException) -> Iterator[Root]:
    for one in chain_of(error):
        yield Root(
            f"the last error ({type(one).__name__})",
            [*one.args, *vars(one).values(), getattr(one, "obj", None)],
        )
    for frame in frames_of(error):
        if not _is_library(frame):
            code = frame.f_code
            # As a copy: `f_locals` itself would stay on the frame.
            for name, value in _locals(frame).items():
                place = f"local `{name}` of {code.co_name}(), {_where(shell, code)}"
                yield Root(f"the last error ({place})", value)


def _is_library(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).split(".")[0] in _LIBRARIES


def _where(shell: Any, code: CodeType) -> str:
    """The first line of a function, by its cell's number where it stands in one."""
    number = getattr(shell.compile, "_filename_map", {}).get(code.co_filename)
    file = os.path.basename(code.co_filename)
    if number is not None:
        file = f"In[{number}]"
    elif f"{os.sep}ipykernel_" in code.co_filename or file.startswith("<ipython-input"):
        file = "a cell"  # IPython 7 does not tell which one
    return f"{file}:{code.co_firstlineno}"


def _locals(frame: FrameType) -> dict[str, Any]:
    from gpulint.runtime.probes.frames import frame_locals

    return frame_locals(frame)
