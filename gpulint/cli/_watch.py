"""`gpulint check --watch`: check, wait for a change, check again."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable

import click

from gpulint.cli._errors import say
from gpulint.cli._request import Request
from gpulint.config import ConfigError, shown_path
from gpulint.lint.engine import Run
from gpulint.lint.results import REPORT_URL
from gpulint.lint.selection import forget_rules
from gpulint.lint.watching import Snapshot, Watched, by_notices, by_the_clock, wait_for_change
from gpulint.reports import plural
from gpulint.source.discovery import Discovery, discover

_CLEAR = "\x1b[2J\x1b[3J\x1b[H"
_MOST_NAMED = 3

Check = Callable[[Request], tuple[int, Run]]  # the exit status, and what was done


def watch(request: Request, check_once: Check) -> int:
    """Check again and again until Ctrl-C, whose exit status, 130, is returned. A wrong configuration is reported, and then watched too."""
    request = request.but(paths=request.paths or (os.curdir,))
    watched = Watched(lambda: _search(request), request.paths, lambda: _named_files(request))
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


def _search(request: Request) -> Discovery:
    return discover(request.paths, request.resolver, request.force_exclude)


def _named_files(request: Request) -> list[str]:
    """The configuration that is named, and the baseline, which a configuration may name."""
    named = [request.config.file, request.baseline]
    with contextlib.suppress(ConfigError):
        named.append(request.under(request.resolver.for_directory(os.getcwd())).baseline)
    return [path for path in named if path is not None]


def _check(request: Request, check_once: Check) -> Run | None:
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
