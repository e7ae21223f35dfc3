"""Standard output whose reader may leave (`| head`)."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def while_read() -> Iterator[None]:
    """Writing to standard output that ends quietly when nobody reads any more, so that the command goes on to its status."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        drop_stdout()


def drop_stdout() -> None:
    """Point standard output to nowhere, or the interpreter would complain when it flushes it at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
