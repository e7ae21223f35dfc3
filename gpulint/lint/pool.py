"""Worker processes for many items of work, where one that dies costs the item it died on and nothing else.

`concurrent.futures` cannot tell which item killed a worker and gives up on all the others; here every worker
takes its items in order and reports each, so the first one without a report is the guilty one.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from typing import Any, Final, Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
_SAFE_PATH: Final = "PYTHONSAFEPATH"


def worker_context() -> BaseContext:
    """`fork` where that is safe (it shares what is already imported), otherwise `spawn`."""
    can_fork = sys.platform == "linux" and threading.active_count() == 1
    return multiprocessing.get_context("fork" if can_fork else "spawn")


def can_start_workers() -> bool:
    """Whether what is spawned can be kept from running a `types.py` of the working directory, where the code to be checked lies:
    Python 3.10 cannot, nor one that is told to ignore its environment."""
    heeds = sys.version_info >= (3, 11) and not sys.flags.ignore_environment
    return heeds or bool(sys.flags.isolated) or worker_context().get_start_method() == "fork"


@contextlib.contextmanager
def _no_working_directory() -> Iterator[None]:
    """Interpreters that are started meanwhile do not look for modules in the working directory first."""
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        os.environ.pop(_SAFE_PATH)
        if before is not None:
            os.environ[_SAFE_PATH] = before


def in_processes(
    work: Callable[[Item], Result],
    chunks: Sequence[Sequence[Item]],
    jobs: int,
    crashed: Callable[[Item, int], Result],
) -> Iterator[tuple[Item, Result]]:
    """Yield every item with what `work` makes of it, in the order in which they get done.

    `work` must be picklable and raise nothing; it runs without garbage collection, and collects when it sees
    fit. `crashed(item, exitcode)` stands in for the item that killed a worker; a negative code is a signal's number.
    """
    context = worker_context()
    left = deque(list(chunk) for chunk in chunks if chunk)
    jobs = min(jobs, len(left))
    workers: list[_Worker[Item]] = []
    try:
        while left or workers:
            while left and len(workers) < jobs:
                workers.append(_Worker(context, work, [other.pipe for other in workers]))
                workers[-1].give(left.popleft())
            ready = wait([worker.pipe for worker in workers])
            for worker in [worker for worker in workers if worker.pipe in ready]:
                yield worker.answer(crashed)
                if worker.died and worker.pending:
                    left.appendleft(list(worker.pending))
                if left and not (worker.died or worker.pending):
                    worker.give(left.popleft())
                if worker.died or not worker.pending:
                    workers.remove(worker)
                    worker.end()
    finally:
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.end()


class _Worker(Generic[Item]):
    """A process, this side's end of its pipe, and the items it has not reported yet."""

    def __init__(
        self, context: BaseContext, work: Callable[[Item], Any], others: Sequence[Connection]
    ) -> None:
        self.pipe, far_end = context.Pipe()
        inherited = [self.pipe, *others] if context.get_start_method() == "fork" else []
        self.process = context.Process(target=_serve, args=(far_end, work, inherited), daemon=True)  # type: ignore[attr-defined]
        with _no_working_directory():
            self.process.start()
        far_end.close()
        self.pending: deque[Item] = deque()
        self.died = False

    def give(self, items: Sequence[Item]) -> None:
        self.pending.extend(items)
        # Dead already: seen when its pipe is read
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.pipe.send(list(items))

    def answer(self, crashed: Callable[[Item, int], Result]) -> tuple[Item, Result]:
        """The first item that it has not reported yet, with its result: of one that it died on, what `crashed` says."""
        try:
            result: Result = self.pipe.recv()
        except (EOFError, OSError):
            self.died = True
            self.process.join()
            result = crashed(self.pending[0], self.process.exitcode or 0)
        return self.pending.popleft(), result

    def end(self) -> None:
        """Wait until it has ended, as it does where its pipe is closed."""
        self.pipe.close()
        self.process.join()


def _serve(pipe: Connection, work: Callable[[Any], Any], inherited: Sequence[Connection]) -> None:
    """The worker's side: until the pipe closes, take a list of items and send one result each."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent cleans up
    gc.freeze()  # what came with the fork stays; looking through it would only copy its pages
    gc.disable()
    for other in inherited:
        other.close()  # or a worker would hold open its siblings' pipes after the parent is gone
    try:
        while True:
            for item in pipe.recv():
                pipe.send(work(item))
    except (EOFError, OSError):
        pass
    # Skip the interpreter's shutdown: a forked child must not run its parent's exit handlers or flush its
    # streams.
    os._exit(0)
