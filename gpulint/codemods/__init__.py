"""Putting the memory kit into existing training scripts: `gpulint codemod NAME PATHS`.

Each codemod is a function from a module to a module that keeps the rest of the text as it is and changes nothing
the second time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from gpulint.source.syntax import flaw

if TYPE_CHECKING:
    from collections.abc import Callable

    import libcst as cst

# Each is the `apply` of a module here.
NAMES: Final = ("monitor", "oom-guard", "phase-cleanup", "alloc-conf")
INSTALL: Final = (
    "functions of other files are not followed. "
    '`memory.Monitor.install("memory.jsonl", every=100)` before the training finds the steps by itself'
)
_ELSEWHERE: Final = f"not changed: it makes an optimizer, and the steps are not in this file; {INSTALL}"


def transform(name: str, text: str) -> str:
    """The text with codemod `name` applied; the same text where there is nothing to do.

    Raises ValueError for an unknown name, libcst.ParserSyntaxError where the text is not Python, RecursionError where it is
    nested so deeply that libcst's native parser would overflow the stack and take the process with it.
    """
    import libcst as cst

    wrong = flaw(text)
    if wrong is not None and wrong.too_deep:
        raise RecursionError(f"line {wrong.line}: {wrong.message}")
    module = cst.parse_module(text)
    made = _function(name)(module)
    if made is module:  # libcst leaves out the blanks of a file without statements
        return text
    lost = text.endswith("\r") and not made.code.endswith("\r")  # which libcst takes for no end of a line
    return made.code + "\r" if lost else made.code


def left_out(name: str, text: str) -> str:
    """What codemod `name` has not done in a text that it left alone, and what to do instead; "" where nothing is missing."""
    if name != "monitor":
        return ""
    import libcst as cst

    from gpulint.codemods.monitor import steps_elsewhere

    return _ELSEWHERE if steps_elsewhere(cst.parse_module(text)) else ""


def _function(name: str) -> Callable[[cst.Module], cst.Module]:
    if name not in NAMES:
        raise ValueError(f"there is no codemod {name!r}; there are {', '.join(NAMES)}")
    found: Callable[[cst.Module], cst.Module] = import_module(f"{__name__}.{name.replace('-', '_')}").apply
    return found
