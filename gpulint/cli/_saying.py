"""Sentences on standard error. What stands in them, names of files and of settings, is data of whoever wrote it."""

from __future__ import annotations

import contextlib
import sys


def say(message: str) -> None:
    """One line behind the program's name, with nothing in it that a terminal would obey."""
    if not message.isprintable():
        from gpulint.reports.layout import printable

        message = printable(message)
    with contextlib.suppress(OSError):
        print(f"gpulint: {message}", file=sys.stderr, flush=True)
