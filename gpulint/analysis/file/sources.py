"""Where a file has a name from: a library, a module of its project that defines it, or the one that is asked for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpulint.analysis.file.surroundings import Surroundings


@dataclass
class Sources:
    """One question, asked of the files of one project."""

    project: Surroundings[Any]
    root: str

    def is_another(self, other: str, raw: bytes, path: str, name: str) -> bool:
        """Whether a file that has the name of what stands at the top of `path` means something else by it."""
        return other != path and (
            self.is_its_own(other, raw, path, name) or self.is_from_elsewhere(other, raw, path, name)
        )

    def is_its_own(self, other: str, raw: bytes, path: str, name: str) -> bool:
        """Whether a file defines the name itself, and imports neither it nor the module that is asked for."""
        said = self.project.mentions(other, raw)
        return name in said.defined and said.imported.isdisjoint((name, PurePath(path).stem))

    def is_from_elsewhere(self, other: str, raw: bytes, path: str, name: str) -> bool:
        """Whether a file imports the name, and each time from a library, or a module of the project that defines it itself, and
        speaks of the module that is asked for nowhere."""
        said = self.project.mentions(other, raw)
        sources = said.sources.get(name, frozenset())
        stem = PurePath(path).stem
        if (
            not sources
            or "*" in said.imported
            or stem == "__init__"
            or re.search(rb"\b%s\b" % re.escape(os.fsencode(stem)), raw)
        ):
            return False
        return all(self.is_library(source) or any(self._defines(source, name)) for source in sources)

    def is_library(self, module: str) -> bool:
        return not module.startswith(".") and module.partition(".")[0] not in self._folders

    def moved(self, origin: str, package: str) -> str | None:
        """The one folder with all modules of a package that a file, and those beside it, import names from, one of these at
        least, where none of them lies in a folder of the package's name: somebody has moved them, or named it anew. None where
        nobody has, and where the folder may go by any name, as the top of a project does."""
        around = os.path.dirname(os.path.abspath(origin))
        asked = {
            (tuple(module.split(".")), name)
            for path, raw in self.project.neighbours(self.root)
            if os.path.dirname(path) == around and package.encode() in raw
            for name, modules in self.project.mentions(path, raw).sources.items()
            for module in modules
            if module.partition(".")[0] == package
        }
        homes = [self._homes(modules, name) for modules, name in asked]
        common = set.intersection(*map(set, homes)) if homes else set()
        (folder,) = common if len(common) == 1 else ("",)
        known = folder not in ("", ".", "src", "lib") and any(home[folder] for home in homes)
        return folder if known else None

    def _homes(self, modules: tuple[str, ...], name: str) -> dict[str, bool]:
        """The folders in which a module `package.inner.module` lies as `inner/module.py`, each with whether it defines a name
        there; none where one lies in a folder that goes by the package's name."""
        inner = modules[1:]
        found = {
            parts[: -len(inner)]: name in self.project.mentions(path, raw).defined
            for parts, path, raw in self._by_stem.get(modules[-1], ())
            if inner and parts[-len(inner) :] == inner
        }
        if any(parts[-1:] == modules[:1] for parts in found):
            return {}
        return {"/".join(parts) or ".": defines for parts, defines in found.items()}

    def parts(self, path: str) -> tuple[str, ...]:
        """The folders of a file and its stem, from the root."""
        return PurePath(os.path.relpath(path, self.root)).with_suffix("").parts

    def _defines(self, module: str, name: str) -> Iterator[bool]:
        """For each file of the project that goes by the last name of a module, whether it defines the name."""
        for _, path, raw in self._by_stem.get(module.rpartition(".")[2], ()):
            yield name in self.project.mentions(path, raw).defined

    @cached_property
    def _by_stem(self) -> dict[str, list[tuple[tuple[str, ...], str, bytes]]]:
        """The project's files, each with its folders and stem from the root: by their stems."""
        found: dict[str, list[tuple[tuple[str, ...], str, bytes]]] = {}
        for path, raw in self.project.neighbours(self.root):
            parts = self.parts(path)
            found.setdefault(parts[-1], []).append((parts, path, raw))
        return found

    @cached_property
    def _folders(self) -> frozenset[str]:
        """What imports of the project may begin with."""
        return frozenset(
            part for other, _ in self.project.neighbours(self.root) for part in self.parts(other)
        )
