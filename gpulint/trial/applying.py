"""Writing the fixes that pay: every file whole, and none that has changed since it was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gpulint.atomic import write_atomic
from gpulint.source.files import FileError, decode, read_bytes
from gpulint.trial.plan import Trial


class NotWritten(Exception):
    """The fixes could not be written. The message is one sentence; what it does not name is unchanged."""


def apply(trial: Trial) -> Trial:
    """Write the files as the fixes that pay make them; the trial with those files in `written`.

    Raises `NotWritten` where a file has changed since the trial began, or cannot be written.
    """
    return write(trial, encoded(trial))


def encoded(trial: Trial) -> dict[str, bytes]:
    """What would be written, by path. Raises `NotWritten` where a file has changed or cannot be read."""
    ready: dict[str, bytes] = {}
    for path, text in trial.texts.items():
        try:
            source = decode(path, read_bytes(path))
            ready[path] = source.encode(text)
        except FileError as error:
            raise NotWritten(f"{path}: {error.message}; nothing was written") from None
        if source.text != trial.originals[path]:
            raise NotWritten(f"{path} has changed since the trial began; nothing was written, run again")
    return ready


def write(trial: Trial, ready: Mapping[str, bytes]) -> Trial:
    """Write files, one after the other; the trial with them in `written`. Raises `NotWritten`, which names those written before."""
    written: list[str] = []
    for path, data in ready.items():
        try:
            write_atomic(path, data)
        except OSError as error:
            done = f"; written before that: {', '.join(written)}" if written else ""
            raise NotWritten(f"{path}: {error.strerror or error}{done}") from None
        written.append(path)
    return replace(trial, written=tuple(written))
