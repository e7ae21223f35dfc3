"""The files of a project as they lie on the disk, or stand in an editor: found, read, and noted as what findings rest on.

Only so large a project is listed as `gpulint.source.files` allows; what cannot be found is unknown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from gpulint.analysis.project.file import File
from gpulint.analysis.project.test_code import by_place, is_test_file
from gpulint.bounds import is_project_root
from gpulint.source.files import (
    MAX_SIZE,
    FileError,
    content_hash,
    every_file,
    for_parser,
    python_files,
    read_bytes,
    tree_hash,
)
from gpulint.source.importing import Importing, import_roots, parsed, project_root
from gpulint.source.program import UNKNOWN_TOP, Top

_SCANNED: Final = 100  # words that are looked for one by one: an index of all of them takes about as long
_WORD: Final = re.compile(rb"[A-Za-z_]\w*")
_MOST_LISTED: Final = 4  # projects that are kept: those of which one lies in another take turns


class _Listing:
    """The Python files below a folder as they are on the disk, as far as the limits allow, and which of them have a word."""

    def __init__(self, root: str) -> None:
        self.files = list(python_files(root))
        self._with_word: dict[str, list[tuple[str, bytes]]] = {}

    @cached_property
    def hash(self) -> str:
        return tree_hash(self.files)

    def having(self, word: str) -> list[tuple[str, bytes]]:
        if word not in self._with_word:
            wanted = word.encode()
            one_by_one = len(self._with_word) < _SCANNED or _WORD.fullmatch(wanted) is None
            likely = self.files if one_by_one else [self.files[at] for at in self._positions.get(wanted, ())]
            self._with_word[word] = [(path, raw) for path, raw in likely if wanted in raw]
        return self._with_word[word]

    @cached_property
    def _positions(self) -> dict[bytes, list[int]]:
        """The positions of the files that have a word, by word."""
        found: dict[bytes, list[int]] = {}
        for position, (_, raw) in enumerate(self.files):
            for word in set(_WORD.findall(raw)):
                found.setdefault(word, []).append(position)
        return found


class Project:
    """The files around those that are linted. One instance serves many files of one process.

    `buffers` are texts that stand for files on disk, as bytes by absolute path: what an editor has not yet saved.
    `top` stands for the project where nothing else marks one. `engine` is what files linted before have left for the next.
    """

    def __init__(self, buffers: Mapping[str, bytes] | None = None, top: Top = UNKNOWN_TOP) -> None:
        self._top = top
        self._buffers = {} if buffers is None else buffers
        self._importing = Importing(top, self._raw)
        self.parsed: dict[str, tuple[bytes, Any]] = {}  # files that the engine has read, with their bytes
        self.engine: Any = None
        self.begin()
        self._forget()

    def begin(self) -> None:
        """A new file is looked at: forget what the last one's findings rest on."""
        self._used: dict[str, str] = {}  # hashes by path
        self._asked: set[str] = set()  # the roots of projects, any file of which matters
        self._importing.begin()

    def forget_files(self) -> None:
        """Files may have been written: list and read those that are asked for anew."""
        self.forget_engine()
        self._forget()
        import_roots.cache_clear()
        project_root.cache_clear()

    def _forget(self) -> None:
        self._listings: dict[str, _Listing] = {}
        self._beside: dict[tuple[tuple[Path, ...], tuple[str, ...]], list[str]] = {}  # files that there are
        self._tests: dict[str, tuple[bytes, bool]] = {}  # those of which what is in them decides

    def forget_engine(self) -> None:
        """A file has been written, of which the engine may know what it was."""
        if self.engine is not None:
            self.engine.release()
            self.engine = None

    @property
    def dependencies(self) -> tuple[tuple[str, str], ...]:
        """The files that the current file's findings rest on, as (absolute path, hash of its bytes); for all files of a
        project `every_file(root)` and their hash."""
        trees = ((every_file(root), self._listed(root).hash) for root in self._asked)
        return tuple(sorted((*self._used.items(), *trees)))

    def _listed(self, root: str) -> _Listing:
        if root not in self._listings:
            if len(self._listings) >= _MOST_LISTED:
                self._forget()
            self._listings[root] = _Listing(root)
        return self._listings[root]

    def _asked_root(self, origin: str) -> str:
        root = self.root_of(origin)
        self._asked.add(root)
        return root

    def root_of(self, filename: str) -> str:
        """The folder of a file's project."""
        return project_root(filename, self._top)

    def within(self, filename: str) -> str:
        """A file's path in its project: folders above the project say nothing about it."""
        return os.path.relpath(filename, self.root_of(filename))

    def is_bounded(self, filename: str) -> bool:
        """Whether it is known where a file's project ends: else what uses the file may lie outside."""
        return self._top.is_whole or is_project_root(self.root_of(filename))

    def locate(self, origin: str, qualified: str) -> tuple[Path, list[str]] | None:
        """The module file that a dotted name starts with, and the rest of the name."""
        return self._importing.locate(origin, qualified)

    def read(self, path: str) -> bytes | None:
        """The bytes of a file of the project, whose findings then depend on it; None where it is too long, or cannot be read."""
        raw = self._raw(Path(path))
        if raw is None or len(raw) > MAX_SIZE:
            return None
        self._used[path] = content_hash(raw)
        return raw

    def _raw(self, path: Path) -> bytes | None:
        buffered = self._buffers.get(os.path.abspath(path)) if self._buffers else None
        if buffered is not None:
            return buffered
        try:
            return read_bytes(str(path))
        except FileError:
            return None

    def holds(self, filename: str, text: str) -> bool:
        """Whether this is the text that the file has for all who ask, and keeps."""
        raw = None if self._buffers else self._raw(Path(filename))
        return raw is not None and for_parser(raw).decode("utf-8-sig", "replace") == text

    def rest_on(self, files: dict[str, str], roots: set[str]) -> None:
        """The current file's findings rest on these files and all of these projects as well, and those to come on what this one does:
        what a project's hash covers need not be named again."""
        roots.update(self._asked)
        self._asked.update(roots)
        covered = {path for root in roots & self._listings.keys() for path, _ in self._listings[root].files}
        files.update(one for one in self._used.items() if one[0] not in covered)
        self._used.update(files)

    def beside(self, filename: str, names: tuple[str, ...]) -> list[str]:
        """The texts of files of these names in the folders from which a file's project imports."""
        folders = import_roots(os.path.dirname(os.path.abspath(filename)), self._top)
        key = (folders, names)
        if key not in self._beside:
            paths = (str(folder / name) for folder in folders for name in names)
            self._beside[key] = [path for path in paths if self._raw(Path(path)) is not None]
        found = map(self.read, self._beside[key])
        return [raw.decode("utf-8", "replace") for raw in found if raw is not None]

    def files_with(self, origin: str, word: str) -> list[tuple[str, bytes]]:
        """The Python files of a file's project whose text has a word: on all of them its findings then depend."""
        if not os.path.isfile(origin):
            return []
        listing, wanted = self._listed(self._asked_root(origin)), word.encode()
        if self._buffers:  # what is typed changes without a word
            typed = ((path, self._buffers.get(path, raw)) for path, raw in listing.files)
            return [(path, raw) for path, raw in typed if wanted in raw]
        return listing.having(word)

    def contains(self, origin: str, pattern: re.Pattern[bytes]) -> bool:
        """Whether any file of a file's project has a text of this form."""
        files = self._listed(self._asked_root(origin)).files
        return any(pattern.search(self._buffers.get(path, raw)) is not None for path, raw in files)

    def is_test_file(self, origin: str, path: str, raw: bytes) -> bool:
        """Whether a file of the project of `origin` is one of its tests."""
        within = os.path.relpath(path, self._asked_root(origin))
        settled = by_place(within)
        if settled is not None:
            return settled
        kept = self._tests.get(path)
        if kept is None or kept[0] != raw:
            tree = parsed(raw)
            text = for_parser(raw).decode("utf-8-sig", "replace")
            found = tree is None or is_test_file(File(path, text, tree), within)
            kept = self._tests[path] = (raw, found)
        return kept[1]
