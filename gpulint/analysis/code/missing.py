"""What a file imports of a module of its project that does not have it."""

from __future__ import annotations

import ast
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpulint.analysis.code.bindings import exported_names

BUILDS: Final = re.compile(
    rb"\b(?:ext_modules|cythonize|CUDAExtension|CppExtension)\b"
)  # modules that no text shows
# What a build puts there, or Python itself: `_version`, `service_pb2`, `__path__`.
_GENERATED = re.compile(r"^_|_pb2(?:_grpc)?$|^version$")


@dataclass(frozen=True, slots=True)
class Asked:
    """The file that an import leads to, `rest` of its dotted name beyond that, the whole of it, and the project's root."""

    path: Path
    rest: list[str]
    qualified: str
    root: str

    @property
    def of_package(self) -> bool:
        return self.path.stem == "__init__"

    @property
    def is_certain(self) -> bool:
        """Whether the file is the one that is meant, and nothing but its text decides what it has. One beside the file may bear a
        library's name, which those who start the program elsewhere get."""
        place = self.path.parent if self.of_package else self.path
        if _GENERATED.search(self.rest[0]) or (len(self.rest) > 1 and not self.of_package):
            return False
        return self.qualified.startswith(".") or len(self._parts) > 1 or str(place.parent) == self.root

    @property
    def _parts(self) -> list[str]:
        steps = self.qualified.lstrip(".").split(".")
        return steps[: len(steps) - len(self.rest)]

    def may_be(self, other: Path) -> bool:
        """Whether another file goes by the same name, for who starts the program from a folder further down."""
        parts = tuple(self._parts)
        names = other.parent.parts if other.stem == "__init__" else other.with_suffix("").parts
        return bool(parts) and names[-len(parts) :] == parts

    def is_missing(self, path: Path, tree: ast.Module | None) -> bool:
        """Whether a module, whose tree this is, has no such name, nor such a module within it where it is a package."""
        names = exported_names(tree) if tree is not None else None
        if names is None or self.rest[0] in names:
            return False
        inside = os.listdir(path.parent) if path.stem == "__init__" else []
        return all(one.partition(".")[0] != self.rest[0] for one in inside)

    def in_words(self) -> str:
        return f"`{self.rest[0]}` is not in {Path(os.path.relpath(self.path, self.root)).as_posix()}"
