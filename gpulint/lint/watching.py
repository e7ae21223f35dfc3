"""Which files a run rests on, and waiting until one of them has changed.

Whether something has changed is always told by looking at the files. The operating system's notices, through
`watchfiles` where that is installed, only say when to look; without it the files are looked at every second.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from gpulint.config import FILE_NAMES, ConfigError
from gpulint.lint.selection import rule_files
from gpulint.source.discovery import DEFAULT_EXCLUDES, Discovery

INTERVAL: Final = 1.0  # seconds from one look to the next without notices
_UNNOTICED: Final = 3.0  # and with them: what lies outside the named directories gives none
_QUIET: Final = 0.1  # files that have not changed for so long are complete
_LONGEST: Final = 2.0
_BESIDE: Final = (*FILE_NAMES, ".gitignore")

Stamp = tuple[int, int, int]
Snapshot = Mapping[str, Stamp | None]
Search = Callable[[], Discovery]


class Watched:
    """The files of a run: those found, their configurations, and what else the run has named: `named` is asked anew with
    each look."""

    def __init__(
        self, search: Search, paths: Sequence[str], named: Callable[[], Iterable[str]] = tuple
    ) -> None:
        self._search = search
        self._paths = [os.path.abspath(path) for path in paths]
        self._named = named
        self._found: set[str] = set()
        self.dependencies: set[str] = set()

    def look(self) -> Snapshot:
        """The state of every file now. Where the configuration is wrong, of those that were known before."""
        with contextlib.suppress(ConfigError):
            self._found = self._files()
        beside = {file for path in self._paths for file in _beside(path)}
        named = set(map(os.path.abspath, self._named()))
        files = self._found | named | self.dependencies | beside
        return {file: _stamp(file) for file in files}

    def _files(self) -> set[str]:
        found = self._search()
        files = {target.path for target in found.targets} | {problem.path for problem in found.problems}
        for directory in {os.path.dirname(target.path) for target in found.targets}:
            files |= {os.path.join(directory, name) for name in _BESIDE}
        for config in {id(target.config): target.config for target in found.targets}.values():
            files |= {*config.extended, *rule_files(config.rules)}
            files |= {config.source} if config.source else set()
        return files


def _beside(path: str) -> Iterator[str]:
    """The configurations that a named path may have: in it and in every directory above."""
    while True:
        yield from (os.path.join(path, name) for name in _BESIDE)
        if path == (path := os.path.dirname(path)):
            return


def _stamp(path: str) -> Stamp | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def changes(before: Snapshot, after: Snapshot) -> list[str]:
    """The files that have come, gone or changed, in order."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def wait_for_change(watched: Watched, before: Snapshot, notices: Iterator[None]) -> list[str]:
    """Wait until something is otherwise than in `before`, and then until writing has stopped; what is otherwise."""
    for _ in notices:
        after = watched.look()
        if not changes(before, after):
            continue
        deadline = time.monotonic() + _LONGEST
        while time.monotonic() < deadline:
            time.sleep(_QUIET)
            last, after = after, watched.look()
            if not changes(last, after):
                break
        if changed := changes(before, after):
            return changed
    return []


def by_the_clock() -> Iterator[None]:
    """Every second."""
    while True:
        time.sleep(INTERVAL)
        yield


def by_notices(paths: Sequence[str]) -> Iterator[None] | None:
    """When something happens below `paths`, and now and then; None where `watchfiles` is not installed."""
    try:
        from watchfiles import DefaultFilter, watch
    except ImportError:
        return None
    below = [path for path in paths if os.path.isdir(path)]
    roots = {path if os.path.isdir(path) else os.path.dirname(os.path.abspath(path)) for path in paths}
    events = watch(
        *filter(os.path.isdir, roots),
        watch_filter=DefaultFilter(ignore_dirs=tuple(DEFAULT_EXCLUDES)),
        recursive=bool(below),
        rust_timeout=int(1000 * _UNNOTICED),
        yield_on_timeout=True,
        debounce=400,
    )
    return _noticed(events)


def _noticed(events: Iterable[object]) -> Iterator[None]:
    try:
        for _ in events:
            yield
    except OSError:  # the system has no more watches to give, or a directory has gone
        yield from by_the_clock()
