"""One text and its two trees: Python's own, which is analysed, and libcst's, for positions and repairs where there is
something to say."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Final

from gpulint.source.syntax import SourceError, flaw, python_tree, readable

if TYPE_CHECKING:
    import libcst as cst

# Brackets in brackets that libcst's native parser is given, or a quarter as many blocks: deeper ones would overflow its stack, which
# no exception would report. Python's own parser, which reads every text first, refuses half as many.
_MOST_NESTED: Final = 400

# Frames that the analysis may need for nested code. Python's own parser runs under the ordinary limit, with which it
# keeps within the native stack.
_STACK: Final = 12_000

# Of an expression in itself, and of all expressions of a file added up that go beyond it.
_USUAL_DEPTH: Final = 50
_MOST_BEYOND: Final = 100_000

_BOM: Final = "\ufeff"


class Trees:
    """Raises `SourceError` where Python's own parser refuses the text, and `module` where libcst's does."""

    def __init__(self, text: str, tree: ast.Module | None = None) -> None:
        """`tree`: where somebody has parsed the text already."""
        self.text = text
        self.tree = tree if tree is not None else _python_tree(text)

    @cached_property
    def unfixable(self) -> SourceError | None:
        """Why no fix can be offered in the text: its trees are of `readable`, since it does not parse itself."""
        return flaw(self.text) if readable(self.text) != self.text else None

    @property
    def read(self) -> str:
        """The text whose trees these are: every place in it is that of the text itself."""
        return self.text if self.unfixable is None else readable(self.text)

    @cached_property
    def module(self) -> cst.Module:
        """libcst's tree, whose nodes the parts of the lowered form have from then on."""
        from gpulint.lint.attaching import attach_all

        wrong = flaw(self.text)
        if wrong is not None and wrong.too_deep:
            raise wrong
        _check_depth(self.tree)
        with deep_stack():
            module = parse(self.read)
        attach_all(self.tree, module)
        return module

    def release(self) -> None:
        """Let go of libcst's tree, which takes much more room than Python's: that one may stay."""
        if self.__dict__.pop("module", None) is not None:
            from gpulint.lint.attaching import detach_all

            detach_all(self.tree)


@contextmanager
def deep_stack() -> Iterator[None]:
    """Let the analysis recurse into deeply nested code."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _STACK))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def _python_tree(text: str) -> ast.Module:
    try:
        return python_tree(text.removeprefix(_BOM))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        refuse(text)
        raise SourceError("the file is nested too deeply to be analysed") from None


def refuse(text: str) -> None:
    """Raise `SourceError` where the running Python finds a flaw in the text; it says so where libcst reads it."""
    wrong = flaw(text)
    if wrong is not None:
        raise SourceError(_explained(text, wrong), wrong.line, wrong.column, wrong.old)


def is_for_another_python(text: str, wrong: SourceError) -> bool:
    """Whether libcst reads what the running Python refuses: code for a newer Python, most of the time."""
    if wrong.too_deep or _is_deep(text):
        return False
    try:
        with deep_stack():
            parse(text)
    except SourceError:
        return False
    return True


def _explained(text: str, wrong: SourceError) -> str:
    if not is_for_another_python(text, wrong):
        return wrong.message
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"{wrong.message} (to Python {version}, which runs gpulint; another version may read it)"


def parse(text: str) -> cst.Module:
    """Parse a file's text, which is not nested too deeply. Raises `SourceError` with the place where it stops making sense."""
    import libcst as cst

    try:
        return cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        message = error.message.split("\n")[0].removeprefix("parser error: error at ")
        raise SourceError(
            f"the file does not parse: {message}", error.raw_line, error.raw_column + 1
        ) from None
    except RecursionError:
        raise SourceError("the file is nested too deeply to be parsed") from None


def _check_depth(tree: ast.Module) -> None:
    """Refuse what takes libcst's parser long: with chains of calls and with brackets in brackets its time grows with the square
    of the depth. A nest of 400 brackets, or a chain of 1,000 calls, is parsed in a second or two."""
    beyond = 0
    stack: list[tuple[ast.AST, int]] = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        beyond += max(depth - _USUAL_DEPTH, 0)
        if beyond > _MOST_BEYOND:
            row = getattr(node, "lineno", 1)
            raise SourceError(
                "calls or brackets are chained too deeply: gpulint does not analyse this file", row
            )
        for child in ast.iter_child_nodes(node):
            stack.append((child, 0 if isinstance(child, ast.stmt) else depth + 1))


def _is_deep(text: str) -> bool:
    """Whether brackets or blocks nest too deeply for libcst's parser, in a text of which Python's own has only seen the beginning.
    Counted on tokens, where strings and comments do not deceive, and only where there are enough of them."""
    brackets = sum(map(text.count, "([{"))
    indented = max(len(line) - len(line.lstrip(" \t")) for line in text.split("\n"))
    if max(brackets, indented) <= _MOST_NESTED:
        return False
    import io
    import tokenize

    depth = indent = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.OP:
                if token.string in "([{":
                    depth += 1
                elif token.string in ")]}":
                    depth -= 1
            elif token.type == tokenize.INDENT:
                indent += 1
            elif token.type == tokenize.DEDENT:
                indent -= 1
            if depth > _MOST_NESTED or indent > _MOST_NESTED // 4:
                return True
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return depth > _MOST_NESTED
    return False
