"""`gpulint check --watch`: check, wait for a change, check again.

Whether something has changed is always told by looking at the files. The operating system's notices, through
`watchfiles` where that is installed, only say when to look; without it the files are looked at every second.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import click

from gpulint.cli._errors import say
from gpulint.cli._options import Given
from gpulint.config import FILE_NAMES, ConfigError, shown_path
from gpulint.lint.engine import Run
from gpulint.lint.results import REPORT_URL
from gpulint.lint.selection import forget_rules, rule_files
from gpulint.reports import plural
from gpulint.source.discovery import DEFAULT_EXCLUDES, discover

_CLEAR = "\x1b[2J\x1b[3J\x1b[H"
_MOST_NAMED = 3
INTERVAL: Final = 1.0  # seconds from one look to the next without notices
_UNNOTICED: Final = 3.0  # and with them: what lies outside the named directories gives none
_QUIET: Final = 0.1  # files that have not changed for so long are complete
_LONGEST: Final = 2.0
_BESIDE: Final = (*FILE_NAMES, ".gitignore")

Stamp = tuple[int, int, int]
Snapshot = Mapping[str, Stamp | None]

Check = Callable[[Any], tuple[int, Run]]  # the exit status, and what was done


def watch(request: Given, check_once: Check) -> int:
    """Check again and again until Ctrl-C, whose exit status, 130, is returned. A wrong configuration is reported, and then watched too."""
    request = request.but(paths=request.paths or (os.curdir,))
    watched = Watched(request)
    notices = by_notices(request.paths)
    _clear()
    if notices is None:
        notices = by_the_clock()
        say('watchfiles is not installed: looking at the files every second; pip install "gpulint[watch]"')
    try:
        while True:
            before = watched.look()
            run = _check(request, check_once)
            if run is not None:
                watched.dependencies = run.dependencies
                before = _taken_in(before, watched.look(), run)
            say("watching for changes, Ctrl-C stops")
            changed = wait_for_change(watched, before, notices)
            _clear()
            say(f"{_named(changed)} changed")
            forget_rules()
    except KeyboardInterrupt:
        return 130


def _clear() -> None:
    """An empty screen for each round, before anything is said on either stream."""
    if sys.stdout.isatty():
        sys.stdout.write(_CLEAR)
        sys.stdout.flush()


def _named_files(request: Given) -> list[str]:
    """The configuration that is named, and the baseline, which a configuration may name."""
    named = [request.config.file, request.baseline]
    with contextlib.suppress(ConfigError):
        named.append(request.under(request.resolver.for_directory(os.getcwd())).baseline)
    return [path for path in named if path is not None]


def _check(request: Given, check_once: Check) -> Run | None:
    try:
        _, run = check_once(request)
        return run
    except ConfigError as error:
        say(str(error))
    except (BrokenPipeError, click.ClickException):
        raise
    except Exception as error:
        say(f"internal error: {type(error).__name__}: {error}; please report it at {REPORT_URL}")
    finally:
        sys.stdout.flush()
    return None


def _taken_in(before: Snapshot, after: Snapshot, run: Run) -> Snapshot:
    """The state that the run has seen: `before` it, but what it wrote or read besides as it is `after` it."""
    own = {path for path, _, _ in run.changes} | (run.dependencies - before.keys())
    return {**before, **{path: after[path] for path in own if path in after}}


def _named(paths: list[str]) -> str:
    shown = ", ".join(shown_path(path) for path in paths[:_MOST_NAMED])
    more = len(paths) - _MOST_NAMED
    return f"{shown} and {plural(more, 'other file')}" if more > 0 else shown


# -- the files that a run rests on, and when to look at them ----------------------------------------------------


class Watched:
    """The files of a run: those found, their configurations, and what else the run has named, which is asked anew with each look."""

    def __init__(self, request: Given) -> None:
        self._request = request
        self._found: set[str] = set()
        self.dependencies: set[str] = set()

    def look(self) -> Snapshot:
        """The state of every file now. Where the configuration is wrong, of those that were known before."""
        with contextlib.suppress(ConfigError):
            self._found = self._files()
        beside = {file for path in self._request.paths for file in _beside(os.path.abspath(path))}
        named = set(map(os.path.abspath, _named_files(self._request)))
        files = self._found | named | self.dependencies | beside
        return {file: _stamp(file) for file in files}

    def _files(self) -> set[str]:
        request = self._request
        found = discover(request.paths, request.resolver, request.force_exclude)
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
