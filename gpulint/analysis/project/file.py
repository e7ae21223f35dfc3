"""One file: its functions and classes, found by their statements alone; a function is bound when somebody asks about it."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from gpulint.analysis.syntax.flow import Flow
from gpulint.analysis.syntax.nodes import FUNCTIONS, last_name, parameters

# With none in them, or none that is full.
_BRACKETS = re.compile(r"([(\[{])(?:[^()\[\]{}]|[(\[{]…[)\]}])+([)\]}])")


def quoted(code: str, limit: int) -> str:
    """Code on one line for a message: what is longer than `limit` loses what stands in its brackets, the innermost first."""
    text, longer = " ".join(code.split()), ""
    while len(text) > limit and text != longer:
        text, longer = _BRACKETS.sub(r"\1…\2", text), text
    return text if len(text) <= limit else text[: limit - 1] + "…"


_ROW_ENDS = re.compile(r"\r\n|\r|\n")
_OPENS = re.compile(r"\s*\(")
_WORDS = re.compile(r"\w+")
_HANDED = re.compile(r"[(,=]\s*(\w+)\s*(?=[,)])")
_BLOCKS = ("body", "orelse", "finalbody")


class Function:
    """A function, a method, or the statements of a module or class."""

    def __init__(
        self, node: Any, file: File, cls: Class | None = None, parent: Function | None = None
    ) -> None:
        self.node, self.file, self.cls, self.parent = node, file, cls, parent
        self.name: str = getattr(node, "name", "<module>")

    def __repr__(self) -> str:
        return f"<{self.qualname}>"

    @cached_property
    def flow(self) -> Flow:
        """The function, bound."""
        self.file.bound += 1
        return Flow(self.node)

    @property
    def qualname(self) -> str:
        return f"{self.cls.name}.{self.name}" if self.cls is not None else self.name

    @property
    def around(self) -> list[Function]:
        """The function itself, and those that it stands in, the outermost last."""
        return [self, *(self.parent.around if self.parent is not None else ())]

    @cached_property
    def parameters(self) -> tuple[ast.arg, ...]:
        return parameters(self.node)

    @cached_property
    def decorators(self) -> frozenset[str]:
        """The last names of what decorates it."""
        nodes = getattr(self.node, "decorator_list", ())
        return frozenset(last_name(one.func if isinstance(one, ast.Call) else one) for one in nodes) - {""}

    @cached_property
    def is_abstract(self) -> bool:
        """Whether a method leaves it to derived classes: it is declared so, or does no more than to raise `NotImplementedError`."""
        last = self.node.body[-1] if isinstance(self.node, FUNCTIONS) and len(self.node.body) <= 2 else None
        said = getattr(last, "exc", None) or getattr(last, "value", None)
        name = last_name(said.func if isinstance(said, ast.Call) else said) if said is not None else ""
        return "abstractmethod" in self.decorators or name == "NotImplementedError"

    @cached_property
    def takes_self(self) -> bool:
        """Whether its first parameter is the object it is called on."""
        if self.cls is None or self.parent is not None or not self.parameters:
            return False
        if not self.decorators.isdisjoint(("staticmethod", "classmethod")):
            return False
        # a class as a folder of functions: they are called through it, and their first parameters have nothing in common
        return self.parameters[0].arg in ("self", "cls") or not self.cls.is_folder

    @cached_property
    def takes_class(self) -> bool:
        """Whether its first parameter is the class it is called on."""
        return self.cls is not None and "classmethod" in self.decorators

    @cached_property
    def self_name(self) -> str:
        """The name of that parameter; empty where there is none."""
        return self.parameters[0].arg if self.takes_self else ""

    @cached_property
    def is_module(self) -> bool:
        """Whether it is the statements of a module."""
        return isinstance(self.node, ast.Module)

    @cached_property
    def words(self) -> frozenset[str]:
        """Every word in its text: what is not among them, it does not say. To pass over functions, never to judge them."""
        if self.is_module:
            return self.file.words
        return frozenset(_WORDS.findall(self.file.rows(self.node.lineno, self.node.end_lineno)))


class Class:
    """A class of the project."""

    def __init__(self, node: ast.ClassDef, file: File, parent: Function | None) -> None:
        self.node, self.file, self.parent = node, file, parent
        self.name = node.name
        self.methods: dict[str, Function] = {}

    def __repr__(self) -> str:
        return f"<class {self.name}>"

    @cached_property
    def is_folder(self) -> bool:
        """Whether its functions take no object: their first parameters differ."""
        firsts = [one.parameters[0].arg for one in self.methods.values() if one.parameters]
        return len(firsts) > 1 and len(set(firsts)) == len(firsts)

    @cached_property
    def body(self) -> Function:
        """Its own statements."""
        return Function(self.node, self.file, None, self.parent)


def methods_naming(classes: Iterable[Class | str], name: str) -> Iterator[tuple[Function, str]]:
    """The methods of classes whose text has the name of an attribute, each with its key for it."""
    for cls in classes:
        for method in cls.methods.values() if isinstance(cls, Class) else ():
            if name in method.words and method.takes_self:
                yield method, f"{method.self_name}.{name}"


class File:
    """A file's text and tree, and what is defined in it."""

    def __init__(self, path: str, text: str, tree: ast.Module, is_test: bool = False) -> None:
        self.path, self.text, self.tree, self.is_test = path, text, tree, is_test
        self.bound = 0  # functions
        self.functions: list[Function] = []
        self.classes: list[Class] = []
        self._within: dict[Function | None, list[Function]] = {}
        self._naming: dict[str, tuple[Function, ...]] = {}
        self._calls: dict[str, tuple[tuple[Function, ast.Call], ...]] = {}
        self.by_node: dict[Any, Function | Class] = {}
        self.body = Function(tree, self)
        self._index(tree.body, None, None)

    def __repr__(self) -> str:
        return f"<file {self.path}>"

    @property
    def parts(self) -> tuple[Function, ...]:
        """All that holds statements: the module, its classes and its functions."""
        return (self.body, *(cls.body for cls in self.classes), *self.functions)

    def within(self, function: Function | None) -> list[Function]:
        """The functions that stand in one, or in none."""
        return self._within.get(function, [])

    def _index(self, statements: list[Any], cls: Class | None, parent: Function | None) -> None:
        for node in statements:
            kind = node.__class__
            if kind in (ast.FunctionDef, ast.AsyncFunctionDef):
                function = Function(node, self, cls, parent)
                self.functions.append(function)
                self._within.setdefault(parent, []).append(function)
                self.by_node[node] = function
                if (cls is not None and parent is None) or (cls is not None and parent is cls.parent):
                    cls.methods[node.name] = function
                self._index(node.body, cls, function)
            elif kind is ast.ClassDef:
                found = Class(node, self, parent)
                self.classes.append(found)
                self.by_node[node] = found
                self._index(node.body, found, parent)
            elif hasattr(node, "body"):
                for name in _BLOCKS:
                    self._index(getattr(node, name, []), cls, parent)
                for handler in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                    self._index(handler.body, cls, parent)

    @cached_property
    def _starts(self) -> list[int]:
        # As Python counts rows: a form feed ends none.
        return [0, *(end.end() for end in _ROW_ENDS.finditer(self.text)), len(self.text)]

    def rows(self, first: int, last: int | None) -> str:
        """The text of rows, counted from 1."""
        return self.text[self._starts[first - 1] : self._starts[min(last or first, len(self._starts) - 1)]]

    @cached_property
    def words(self) -> frozenset[str]:
        """Every word in its text."""
        return frozenset(_WORDS.findall(self.text))

    def naming(self, word: str) -> tuple[Function, ...]:
        """The module's statements and the functions whose text has a word."""
        if word not in self._naming:
            those = (self.body, *self.functions) if word in self.words else ()
            self._naming[word] = tuple(one for one in those if word in one.words)
        return self._naming[word]

    @cached_property
    def handed_on(self) -> frozenset[str]:
        """The names that stand where a call may be given them, or another name: `f(name, key=name)`."""
        return frozenset(_HANDED.findall(self.text))

    def function_at(self, row: int) -> Function:
        """The innermost function of a row; the module's statements where there is none."""
        return self._by_row.get(row, self.body)

    @cached_property
    def _by_row(self) -> dict[int, Function]:
        found: dict[int, Function] = {}
        for one in self.functions:  # the inner ones come later
            last = one.node.end_lineno or one.node.lineno
            found.update(dict.fromkeys(range(one.node.lineno, last + 1), one))
        return found

    def source(self, node: Any) -> str:
        """The text of an expression or a statement."""
        rows = self.rows(node.lineno, node.end_lineno).encode()
        last = self.rows(node.end_lineno, node.end_lineno).encode()
        return rows[node.col_offset : len(rows) - len(last) + node.end_col_offset].decode(errors="replace")

    def _rows_calling(self, name: str) -> Iterator[int]:
        """The rows where a word stands before a bracket."""
        text = self.text
        at = text.find(name)
        while at >= 0:
            after = at + len(name)
            if not (text[at - 1 : at].isalnum() or text[at - 1 : at] == "_") and _OPENS.match(text, after):
                yield bisect_right(self._starts, at)
            at = text.find(name, after)

    def calls_named(self, name: str) -> tuple[tuple[Function, ast.Call], ...]:
        """The calls of what has this last name, with the function they stand in; only what may have one is bound."""
        if name not in self._calls:
            rows = self._rows_calling(name) if name in self.words else ()
            those = dict.fromkeys(one for row in rows for one in self._around(row))
            self._calls[name] = tuple((one, call) for one in those for call in one.flow.calls.get(name, ()))
        return self._calls[name]

    def _around(self, row: int) -> list[Function]:
        """The function of a row, and where it stands in the head of one, what that is in."""
        function = self.function_at(row)
        if function.is_module:
            around = (one for one in self.classes if one.node.lineno <= row <= (one.node.end_lineno or row))
            return [function, *(cls.body for cls in around)]
        return [function, function.parent or self.body] if row <= function.node.body[0].lineno else [function]
