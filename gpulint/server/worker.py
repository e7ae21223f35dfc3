"""The one thread that lints, so that the thread that talks to the editor never waits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Final, TypeVar

Result = TypeVar("Result")

# The analysis recurses into nested code; threads other than the first get half a megabyte on some systems.
_STACK: Final = 64 * 1024 * 1024


class Worker:
    """Runs functions one after another in a thread that does not keep the process alive."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        size = threading.stack_size(_STACK)
        try:
            threading.Thread(target=self._run, name="gpulint", daemon=True).start()
        finally:
            threading.stack_size(size)

    def submit(self, function: Callable[[], Result]) -> Future[Result]:
        """The future result of `function`. A future that is cancelled before its turn is passed over."""
        future: Future[Result] = Future()

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)

        self._jobs.put(job)
        return future

    def _run(self) -> None:
        while True:
            self._jobs.get()()
