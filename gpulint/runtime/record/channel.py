"""The line between parent and child: a socket that carries one JSON object per line, both ways.

A socket rather than files: it works when the disk is full, ends when either side dies, and serves any number
of ranks.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable
from typing import Any

ADDRESS = "GPULINT_CHANNEL"
TOKEN = "GPULINT_TOKEN"
OPTIONS = "GPULINT_OPTIONS"
Send = Callable[[dict[str, Any]], None]
TIMEOUT, INTERRUPTED, ENOUGH = "timeout", "interrupted", "enough"  # what the parent says: end, and why


def connect_to(address: str) -> socket.socket:
    """Open the parent's socket: `@name` is an abstract address (Linux), anything else a path."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(30.0)
    connection.connect("\0" + address[1:] if address.startswith("@") else address)
    connection.settimeout(None)
    return connection


class Channel:
    """The child's end. Sending never raises: without a parent there is nobody left to tell. `process` numbers a worker, as in
    `result.RankResult`."""

    def __init__(self, address: str, token: str, process: tuple[int, ...] = ()) -> None:
        self._socket: socket.socket | None = connect_to(address)
        self._lock = threading.Lock()
        self.send({"token": token, "pid": os.getpid(), "process": process})
        os.register_at_fork(after_in_child=self.close)

    def send(self, message: dict[str, Any]) -> None:
        """Write one message, whole, or drop it."""
        if self._socket is None:
            return
        data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        with self._lock, contextlib.suppress(OSError):
            self._socket.sendall(data)

    def listen(self, on_command: Callable[[str], None], on_lost: Callable[[], None]) -> None:
        """Start a daemon thread that calls `on_command` for each word from the parent and `on_lost` when it
        is gone."""
        connection = self._socket
        assert connection is not None

        def loop() -> None:
            with contextlib.suppress(OSError), connection.makefile(encoding="utf-8") as words:
                for word in words:
                    on_command(word.rstrip("\n"))
            if self._socket is connection:
                on_lost()

        threading.Thread(target=loop, name="gpulint-channel", daemon=True).start()

    def close(self) -> None:
        """Let go of the socket; a forked process calls this so that it does not speak for its parent."""
        connection, self._socket = self._socket, None
        if connection is not None:
            os.close(connection.detach())  # whoever reads from it
