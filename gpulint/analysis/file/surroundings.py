"""What a file may ask of the project around it. `project.Project` answers; a file alone has none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol, TypeVar

from gpulint.analysis.code import ir
from gpulint.analysis.code.mentions import Mentions
from gpulint.analysis.code.outside import FileCalls
from gpulint.analysis.file.calls.effort import Effort
from gpulint.analysis.values.values import Val

File = TypeVar("File")


class Surroundings(Protocol[File]):
    """The files of a project, each as a `File` once it was read."""

    effort: Effort

    def value(self, origin: str, qualified: str) -> Val | None:
        """The function or class that `qualified` denotes in the file `origin`, through re-exports; else None."""

    def bound(self, origin: str, qualified: str) -> tuple[File, ir.Expr] | None:
        """What the module that `qualified` names a constant of binds it to, once, and that module; else None."""

    def lacks(self, origin: str, qualified: str) -> str | None:
        """What an import asks of a module of the project that does not have it, in words."""

    def command_line(self, origin: str) -> Mapping[str, object]:
        """The defaults of the command lines of the project of `origin`, where they agree, by the names of their attributes."""

    def beside(self, origin: str, names: tuple[str, ...]) -> list[str]:
        """The texts of files of these names in the folders from which a file's project imports."""

    def root(self, origin: str) -> str:
        """The folder of a file's project, any file of which may hold what is asked for."""

    def top_folders(self, origin: str) -> frozenset[str]:
        """The folders with Python files at the top of a file's project."""

    def within(self, filename: str) -> str:
        """The path of a file from its project's root on."""

    def is_bounded(self, filename: str) -> bool:
        """Whether it is known where the project of a file ends."""

    def contains(self, origin: str, pattern: re.Pattern[bytes]) -> bool:
        """Whether a file of the project of `origin` has the pattern in its text."""

    def files_calling(self, origin: str, function: ir.Function) -> list[File] | None:
        """The files that call a function of `origin`; None where there are too many to tell."""

    def files_defining(self, origin: str, name: str, also: bytes) -> list[File]:
        """The files around `origin` that define a function of this name and have `also` in their text."""

    def methods_named(self, origin: str, name: str) -> list[ir.Function]:
        """The methods of a name of all classes around `origin`, as text."""

    def uses_as_value(self, origin: str, function: ir.Function) -> bool:
        """Whether a file of the project hands the function on instead of calling it."""

    def speaks_of(self, origin: str, function: ir.Function) -> bool:
        """Whether another file of the project may run the function: calls or reads something of its name."""

    def callers_beside(self, origin: str, function: ir.Function) -> frozenset[str] | None:
        """The functions of its own file, by their qualified names, that call what may be the function; None where the file does
        more with its name."""

    def calls_of(self, origin: str, function: ir.Function) -> list[ir.Call]:
        """The calls around `origin` that may run the function, or make an object by it where it is a constructor."""

    def follows_objects(self, origin: str, cls: str) -> bool:
        """Whether all objects of a class of `origin` go by names that are seen."""

    def related(self, function: ir.Function, name: str) -> bool:
        """Whether the function's class and the class of this name may be one another's base."""

    def bases(self, name: str) -> frozenset[str]:
        """The names of a class's bases anywhere in the project."""

    def derived(self, name: str) -> set[str]:
        """The names of the classes that derive from one of this name."""

    def is_test(self, path: str, raw: bytes, root: str) -> bool:
        """Whether a file is one of tests."""

    def mentions(self, path: str, raw: bytes) -> Mentions:
        """What a file does with the names of others."""

    def calls_in(self, path: str, raw: bytes) -> FileCalls:
        """The calls of a file by the names that they use."""

    def neighbours(self, root: str) -> list[tuple[str, bytes]]:
        """The files below a folder, with their bytes."""
