"""The files of a program, what their names lead to in other files, and the classes that derive from each other."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from gpulint.analysis.models.table import table
from gpulint.analysis.project.file import Class, File, Function
from gpulint.analysis.syntax.flow import Definition
from gpulint.analysis.syntax.nodes import dotted
from gpulint.analysis.syntax.remembering import remembered, remembering
from gpulint.source.files import for_parser
from gpulint.source.importing import parsed

MOST_FILES = 400  # read for one program
MOST_FOUND = 8  # files asked who calls a function


class Sources(Protocol):
    """What finds and reads files, and notes on which ones findings depend."""

    def locate(self, origin: str, qualified: str) -> tuple[Path, list[str]] | None:
        """The module file that a dotted name starts with, and the rest of the name."""

    def read(self, path: str) -> bytes | None:
        """The bytes of a file of the project, whose findings then depend on it."""

    def files_with(self, origin: str, word: str) -> Sequence[tuple[str, bytes]]:
        """The Python files of the project that a file is in whose text has a word: on all of them its findings then depend."""

    def is_test_file(self, origin: str, path: str, raw: bytes) -> bool:
        """Whether a file of the project is one of its tests."""

    def beside(self, filename: str, names: tuple[str, ...]) -> list[str]:
        """The texts of files of these names in the folders from which a file's project imports."""

    def is_bounded(self, filename: str) -> bool:
        """Whether it is known where a file's project ends."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A name that a module binds to something else than a function, a class or an import."""

    file: File
    definitions: tuple[Definition, ...]


Kept = dict[str, tuple[bytes, File | None]]  # files by path, with their bytes
Named = File | Function | Class | Bound


class Program:
    """What is known of the program that a file is of. `kept` are files read before, by path, with their bytes."""

    def __init__(self, file: File, sources: Sources | None, kept: Kept) -> None:
        self.sources = sources
        self._kept = kept
        self._files: dict[str, File | None] = {os.path.abspath(file.path): file}
        self.answers: dict[Any, Any] = {}

    @property
    def files(self) -> Iterator[File]:
        """The files read so far."""
        return (file for file in self._files.values() if file is not None)

    @property
    def is_full(self) -> bool:
        """Whether as many files were read as are: of others nothing is known."""
        return len(self._files) >= MOST_FILES

    def known(self, filename: str) -> File | None:
        """A file, where it has been read."""
        return self._files.get(os.path.abspath(filename))

    def adopt(self, file: File) -> File | None:
        """The program's own of a file that somebody has read; None where it has it with another tree."""
        path = os.path.abspath(file.path)
        if self._files.get(path) is None:
            self._files[path] = file
        found = self._files[path]
        return found if found is not None and found.tree is file.tree else None

    def open(self, path: str, raw: bytes | None = None) -> File | None:
        """A file of the project; None where it cannot be read, or enough have been."""
        path = os.path.abspath(path)
        if path not in self._files:
            if raw is None and self.sources is not None:
                raw = self.sources.read(path)
            self._files[path] = None if raw is None or self.is_full else self._parsed(path, raw)
        return self._files[path]

    def _parsed(self, path: str, raw: bytes) -> File | None:
        kept = self._kept.get(path)
        if kept is None or kept[0] != raw:
            tree = parsed(raw)
            text = for_parser(raw).decode("utf-8-sig", "replace")
            found = File(path, text, tree) if tree is not None else None
            if len(self._kept) > 300:
                self._kept.clear()
            kept = self._kept[path] = (raw, found)
        return kept[1]

    # -- names

    def imported(self, file: File, qualified: str) -> Named | str:
        """What a qualified name leads to from a file: something of the project, or itself where it is a library's."""
        key = (Program.imported, file.path, qualified)
        return remembered(self.answers, key, qualified, lambda: self._import(file, qualified))  # type: ignore[no-any-return]

    def _import(self, file: File, qualified: str) -> Named | str:
        found = self.sources.locate(file.path, qualified) if self.sources is not None else None
        if found is None:
            return qualified
        path, rest = found
        other = self.open(str(path))
        if other is None or (other is file and not rest):
            return qualified
        return self.member(other, rest) if rest else other

    def member(self, file: File, names: Sequence[str]) -> Named | str:
        """What a module's name leads to, through re-exports."""
        return self._beneath(self.top_level(file, names[0]), names)

    def top_level(self, file: File, name: str) -> Named | str:
        """What a module binds a name to, whichever way of several: the last."""
        definitions = file.body.flow.definitions.get(name)
        if not definitions:
            return self._from_star(file, name) or name
        return self.bound_by(file, definitions[-1]) or Bound(file, tuple(definitions))

    def bound_by(self, file: File, definition: Definition) -> Named | str | None:
        """The function, the class or the import that a definition in a file gives a name to; None where it is another one."""
        if definition.kind == "import":
            return self.imported(file, definition.value)
        return file.by_node.get(definition.node) if definition.kind in ("function", "class") else None

    def binds(self, file: File, name: str) -> bool:
        """Whether a module is seen to have a name, its own or by a `*`."""
        return name in file.body.flow.definitions or self._from_star(file, name) is not None

    @remembering(())
    def members(self, file: File) -> tuple[Named, ...]:
        """The functions that a module has for others, or else the classes, its own and those that it imports."""
        names = [one for one in file.body.flow.definitions if one.isidentifier() and not one.startswith("_")]
        found = [self.top_level(file, one) for one in names]
        for module in _starred(file):
            other = self.imported(file, module)
            found += self.members(other) if isinstance(other, File) else ()
        functions = tuple(dict.fromkeys(one for one in found if isinstance(one, Function)))
        return functions or tuple(dict.fromkeys(one for one in found if isinstance(one, Class)))

    @remembering(None)
    def _from_star(self, file: File, name: str) -> Named | str | None:
        """What a name leads to that some `*` brings; None where none is seen to."""
        for module in _starred(file):
            found = self.imported(file, f"{module}{'' if module.endswith('.') else '.'}{name}")
            if not isinstance(found, str) or (module.startswith("torch") and _has(module, name)):
                return found
            other = self.imported(file, module)
            if isinstance(other, File) and self.binds(other, name):
                return found
        return None

    # -- classes

    def bases(self, cls: Class) -> tuple[Class | str, ...]:
        """What a class derives from, each a class of the project or a qualified name."""
        nodes = (node.value if isinstance(node, ast.Subscript) else node for node in cls.node.bases)
        named = (name for node in nodes if (name := dotted(node)) is not None)
        found = ((self.resolve(cls.file, name, cls.parent), name) for name in named)
        return tuple(one if isinstance(one, (Class, str)) else name for one, name in found)

    def resolve(self, file: File, spelled: str, inside: Function | None = None) -> Named | str:
        """What a dotted name leads to at a module's level, or in the functions around it."""
        names = spelled.split(".")
        for around in inside.around if inside is not None else ():
            for one in around.flow.definitions.get(names[0], ()):
                if (found := self.bound_by(file, one)) is not None:
                    return self._beneath(found, names)
        return self.member(file, names)

    def _beneath(self, found: Named | str, names: Sequence[str]) -> Named | str:
        """What the names after the first lead to from what that one does."""
        _, *rest = names
        if isinstance(found, str):
            return ".".join((found, *rest))
        if not rest:
            return found
        if isinstance(found, File):
            return self.member(found, rest)
        return (found.methods if isinstance(found, Class) else {}).get(rest[0], ".".join(names))

    @remembering(())
    def lineage(self, cls: Class) -> tuple[Class | str, ...]:
        """A class and all that it derives from, the nearest first."""
        found: list[Class | str] = [cls]
        for one in found:
            if isinstance(one, Class) and len(found) < 30:
                found += [base for base in self.bases(one) if base not in found]
        return tuple(found)

    def library_bases(self, cls: Any) -> list[str]:
        """The names of what a class derives from that is none of the project's; empty also of what is no class of the project."""
        return [one for one in (self.lineage(cls) if isinstance(cls, Class) else ()) if isinstance(one, str)]

    @remembering(None)
    def method(self, cls: Any, name: str) -> Function | None:
        """The method that an object of a class has by a name; None also of what is no class of the project."""
        lineage = self.lineage(cls) if isinstance(cls, Class) else ()
        classes = (one for one in lineage if isinstance(one, Class))
        return next((one.methods[name] for one in classes if name in one.methods), None)

    @remembering(())
    def subclasses(self, cls: Class) -> tuple[Class, ...]:
        """The classes of the files around that derive from a class, in any number of steps."""
        found = [cls]
        for each in found:  # grows while it is gone through
            others = (one for file in self.searched(each.name, each.file) for one in file.classes)
            found += [one for one in others if one not in found and cls in self.lineage(one)]
        return tuple(found[1:])

    # -- callers

    @remembering(())
    def searched(self, word: str, home: File) -> tuple[File, ...]:
        """The files of the project whose text has a word, tests left out: first the one that asks, then those that name it, which may
        import it."""
        return (home, *islice(self._others_with(word, home), MOST_FOUND))

    def _others_with(self, word: str, home: File) -> Iterator[File]:
        if self.sources is None:
            return
        own = os.path.abspath(home.path)
        stem = os.fsencode(os.path.splitext(os.path.basename(own))[0])
        near = lambda one: (stem not in one[1], -len(os.path.commonprefix((own, one[0]))))  # noqa: E731
        for path, raw in sorted(self.sources.files_with(home.path, word), key=near):
            if path != own and not self.sources.is_test_file(home.path, path, raw):
                file = self.open(path, raw)
                if file is not None and word in file.words:
                    yield file

    @remembering(())
    def calls_named(self, name: str, home: File) -> tuple[tuple[Function, ast.Call], ...]:
        """All calls of the program of what has this last name, and of it those first that stand in the file that asks."""
        return tuple(call for file in self.searched(name, home) for call in file.calls_named(name))


def _starred(file: File) -> Iterator[str]:
    """The modules of which a file imports whatever they have."""
    for one in file.tree.body:
        if isinstance(one, ast.ImportFrom) and any(alias.name == "*" for alias in one.names):
            yield "." * one.level + (one.module or "")


def _has(module: str, name: str) -> bool:
    """Whether a module of torch may define a name: one of classes has no `np`."""
    known, row = table().knows(module), table().function(f"{module}.{name}")
    return name in known or name[:1].isupper() or (row is not None and row.gives == "tensor")
