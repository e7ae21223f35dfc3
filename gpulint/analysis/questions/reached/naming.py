"""Whether a program uses what stands at the top of one of its files, a class or a function: through all files of its project,
by name, from what makes or calls it to what makes or calls that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from gpulint.analysis.code.mentions import BODY, PROGRAM, Mentions
from gpulint.analysis.file.reaching import may_import
from gpulint.analysis.file.sources import Sources

if TYPE_CHECKING:
    from gpulint.analysis.file.surroundings import Surroundings

_DEPTH = 3  # what makes what makes
_LOOKS = re.compile(rb"\b(?:getattr|vars|dir|getmembers|globals|locals|eval|exec)\s*\(|__dict__|\bmodules\[")


@dataclass
class Naming:
    """One question, asked of the files of one project. `tried_out`: a file of which what it does as a program does not count."""

    project: Surroundings[Any]
    root: str
    tried_out: str = ""
    _seen: set[tuple[str, str]] = field(default_factory=set)

    def is_used(self, path: str, name: str, depth: int = _DEPTH) -> bool:
        """Whether anything that runs, for all that its name tells, uses the class or function of a file, or one below the
        class. Who uses himself alone does not."""
        if (path, name) in self._seen:
            return False
        self._seen.add((path, name))
        return (
            any(self._uses(other, raw, path, name, depth) for other, raw in self._speaking(path, name))
            or any(not depth or self.is_used(other, below, depth - 1) for other, below in self._below(name))
            or self._is_looked_up(path, name)
        )

    def _speaking(self, path: str, name: str) -> Iterator[tuple[str, bytes]]:
        """The files that have the name of what stands in a file, and may mean it."""
        word = re.compile(rb"\b%s\b" % re.escape(name.encode()))
        for other, raw in self.project.neighbours(self.root):
            if word.search(raw) is None or (other != path and not may_import(raw, path, name)):
                continue
            if other == path or not self._sources.is_from_elsewhere(other, raw, path, name):
                yield other, raw

    def _uses(self, other: str, raw: bytes, path: str, name: str, depth: int) -> bool:
        """Whether a file that has the name uses what it stands for, but in what nothing uses."""
        said = self.project.mentions(other, raw)
        if other != path and self._sources.is_its_own(other, raw, path, name):
            return False
        if said.unreadable or name in said.names | said.attributes | said.texts | said.renamed:
            return True
        if other == path and name in said.decorated:
            return True
        for place in said.called.get(name, ()):
            if place == PROGRAM and other == self.tried_out:
                continue
            if place in (BODY, PROGRAM) or not depth or self._is_entered(other, raw):
                return True
            if self.is_used(other, place, depth - 1):
                return True
        return False

    def _below(self, name: str) -> Iterator[tuple[str, str]]:
        """The classes below one of this name, each with its file."""
        for below in self.project.derived(name):
            wanted = re.compile(rb"^[ \t]*class\s+%s\b" % re.escape(below.encode()), re.M)
            for other, raw in self.project.neighbours(self.root):
                if wanted.search(raw) is not None:
                    yield other, below

    def _is_entered(self, path: str, raw: bytes) -> bool:
        """Whether somebody else calls the functions of a file: pytest, who loads the repository from a hub."""
        return PurePath(path).stem == "hubconf" or self.project.is_test(path, raw, self.root)

    def _is_looked_up(self, path: str, name: str) -> bool:
        """Whether a file takes things of a module by names that nobody sees, and this may be among them."""
        return any(
            (said.looks_around and (other == path or may_import(raw, path, name)))
            or any(self._may_hold(module, path, name) for module in said.looked_into)
            for other, raw, said in self._looking
        )

    def _may_hold(self, module: str, path: str, name: str) -> bool:
        """Whether a module of the project may have what stands in a file among its own names."""
        if self._sources.is_library(module):
            return False
        last = module.rpartition(".")[2]
        return last in self._sources.parts(path) or any(
            last in self._sources.parts(other)[-2:] and may_import(raw, path, name)
            for other, raw in self.project.neighbours(self.root)
        )

    @cached_property
    def _looking(self) -> list[tuple[str, bytes, Mentions]]:
        files = self.project.neighbours(self.root)
        return [(other, raw, self.project.mentions(other, raw)) for other, raw in files if _LOOKS.search(raw)]

    @cached_property
    def _sources(self) -> Sources:
        return Sources(self.project, self.root)
