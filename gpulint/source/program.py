"""How far the program goes that a file is a part of, where no file marks it as a project."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gpulint.bounds import is_project_root
from gpulint.source.files import walk

_MOST_FILES: Final = 200  # of one program
MOST_LEVELS: Final = 16  # between a file and the root of its project


@dataclass(frozen=True, slots=True)
class Top:
    """The folder, an absolute path, that holds a program which no file marks as a project; empty where none is known. With `apart`
    each folder in it is a program. `is_whole`: nothing outside it uses what is in it."""

    folder: str = ""
    apart: bool = False
    is_whole: bool = False

    def is_at(self, folder: Path) -> bool:
        """Whether a program begins at a folder."""
        return bool(self.folder) and (folder.parent if self.apart else folder) == Path(self.folder)

    def holds(self, folder: Path) -> bool:
        """Whether a folder is the program's, or in it."""
        inside = bool(self.folder) and folder.is_relative_to(self.folder)
        return inside and not (self.apart and folder == Path(self.folder))


UNKNOWN_TOP = Top()


def _is_marked(folder: str) -> bool:
    """Whether a folder is, or lies in, a project that a file marks: then that says how far the program goes, and not which of its
    files are checked together, as a hook before commits does with those that are staged."""
    above = Path(os.path.abspath(folder))
    return any(is_project_root(one) for one in (above, *above.parents[:MOST_LEVELS]))


def top_of(paths: Sequence[str]) -> Top:
    """What holds the program, where no file marks it: the folder that the command runs in, if all files are in it and there are
    not too many, or the one that holds them all. What a single file may be a part of is not known for sure."""
    several = len(paths) > 1
    here = os.getcwd()
    folders = {os.path.dirname(os.path.abspath(path)) for path in paths}
    with contextlib.suppress(ValueError):  # none, or on different drives
        common = os.path.commonpath(folders)
        if _is_marked(common):
            return UNKNOWN_TOP
        found = top_at(here) if os.path.commonpath((here, common)) == here else UNKNOWN_TOP
        if several and (found.apart or not found.folder):
            return Top(common, apart=len(paths) > _MOST_FILES, is_whole=True)
        return replace(found, is_whole=several)
    return UNKNOWN_TOP


def top_at(root: str) -> Top:
    """The same of files that come one by one, in a folder that an editor has opened: a program, or one of programs where it has
    too many files; unknown where what is not Python's is much more, and of a folder in a project that a file marks."""
    if _is_marked(root):
        return UNKNOWN_TOP
    count = others = 0
    for _, folders, names in walk(root):
        count += sum(name.endswith(".py") for name in names)
        others += len(names) + len(folders)
        if others > 100 * _MOST_FILES:
            return UNKNOWN_TOP
        if count > _MOST_FILES:
            return Top(root, apart=True)
    return Top(root)
