"""What the running Python's own parser says of a text.

It is fifty times as fast as libcst's, its messages are the ones people know, and it refuses what is nested so deeply
that libcst's native parser would overflow the stack and take the process with it.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from gpulint.source.files import TextError, split_lines

_OF_IPYTHON: Final = re.compile(r"%{1,2}[a-z]|[!?]\w")
_ASYNC_ARGUMENT: Final = re.compile(
    r"([(,]\s*)async(?=\s*=[^=])", re.ASCII
)  # `x.cuda(async=True)`, of torch before 1.0
_OF_PYTHON_2: Final = (
    "Missing parentheses in call to",
    "multiple exception types must be parenthesized",
    "leading zeros in decimal integer literals",
    "Function parameters cannot be parenthesized",
    "Lambda expression parameters cannot be parenthesized",
)


class SourceError(TextError):
    """The text cannot be analysed. Reported as GPU000 there. Only a newer parser may still take what is not `too_deep`."""

    def __init__(
        self, message: str, line: int = 1, column: int = 1, old: bool = False, too_deep: bool = False
    ) -> None:
        super().__init__(message, line, column)
        self.old = old
        self.too_deep = too_deep


def python_tree(source: str | bytes) -> ast.Module:
    """Python's own tree of a text, of `readable` where that has none. What Python would warn of in it is its author's business."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(source)
        except SyntaxError:
            if isinstance(source, str):
                return ast.parse(readable(source))
            return ast.parse(readable(source.decode("latin-1")).encode("latin-1"))  # each byte as it is


def readable(text: str) -> str:
    """The same with another name, as long, for arguments that are called `async`, a keyword since Python 3.7."""
    return _ASYNC_ARGUMENT.sub(r"\1asynk", text) if "async" in text else text


def flaw(text: str, is_cell: bool = False) -> SourceError | None:
    """What is wrong with `text` as a Python module, or as a notebook's cell, which may `await`; None where nothing is."""
    import symtable

    try:
        with warnings.catch_warnings(), _usual_depth():
            warnings.simplefilter("ignore")
            if is_cell:
                compile(text, "<text>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
            else:
                symtable.symtable(text, "<text>", "exec")
    except SyntaxError as error:
        line, column = error.lineno or 1, max(error.offset or 1, 1)
        if "too many nested" in error.msg or "too many levels" in error.msg:
            return _too_deep(line, column)
        message, old = _in_words(error, "" if is_cell else text)
        return SourceError(message, line, column, old)
    except (RecursionError, MemoryError):
        longest = max(enumerate(split_lines(text), start=1), key=lambda numbered: len(numbered[1]))
        return _too_deep(longest[0], 1)
    except (ValueError, OverflowError) as error:
        return SourceError(f"syntax error: {error}")
    return None


def _in_words(error: SyntaxError, text: str) -> tuple[str, bool]:
    """What is wrong, in one sentence: for what people lint most often that is no Python 3, what it is. And whether it is of an older Python."""
    line = "".join(split_lines(text)[(error.lineno or 1) - 1 :][:1]).strip()
    if _OF_IPYTHON.match(line):
        magic = f"`{line}` is IPython's, which reads it in notebooks; Python cannot read the file: comment the line out"
        return magic, False
    if error.msg.startswith(_OF_PYTHON_2):
        why = f"this is Python 2, and gpulint reads Python 3, so nothing in the file is checked: {error.msg}"
        return why, True
    renamed = readable(text)
    if renamed != text and "async" in line:
        left = "no fix is offered" if flaw(renamed) is None else "nothing is checked"
        asks = f"`async` is a keyword since Python 3.7, which cannot run this file: write `non_blocking=True` ({left} in it until then)"
        return asks, True
    return f"syntax error: {error.msg}", False


@contextmanager
def _usual_depth() -> Iterator[None]:
    """Python's own measure of too deep, whatever recursion limit the host program has set for itself."""
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(min(limit, 1000))
    except RecursionError:  # already deeper than that
        yield
        return
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def _too_deep(line: int, column: int) -> SourceError:
    message = "nested too deeply to be analysed; Python cannot compile it either"
    return SourceError(message, line, column, too_deep=True)
