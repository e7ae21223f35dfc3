"""Which storages are read or written for a while, by any operator on any thread.

torch's execution trace observer writes down the arguments of every operator below the dispatcher: of forward, backward and
optimizer alike, without a mode that would keep compiled code from running, and whether or not the script profiles itself. It
numbers storages in a way of its own, so at the end each tensor of interest is handed to an operator that does nothing with
it, and its number is read from that.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

LONGEST = 64 * 1024 * 1024  # bytes of a trace that are read: more takes longer than the steps did
_LEAVING = 0.05  # seconds; a few microseconds are what they take
_ASKED = b' "name": "aten::is_set_to"'
# Of a tensor in an operator's arguments: `[tensor, storage, offset, numel, itemsize, device]`. Read off the text: to decode it as
# JSON takes three times as long.
_STORAGE = re.compile(rb'\[\d+, ?(\d+), ?\d+, ?\d+, ?\d+, ?"')
_OURS = b"execution_trace_observer.cpp"


class Trace:
    """Follows what operators touch from `begin` to `end`. Only one at a time, in a process."""

    def __init__(self) -> None:
        self._path = ""
        # A forked process would go on writing into the same file.
        os.register_at_fork(before=self.drop)

    @property
    def on(self) -> bool:
        """Whether operators are followed now."""
        return bool(self._path)

    def begin(self) -> bool:
        """Whether it could begin: not where the script keeps such a trace itself, or its torch has none."""
        handle, path = tempfile.mkstemp(prefix="gpulint-", suffix=".json")
        os.close(handle)
        observers = torch._C._profiler
        try:
            with _unsaid():
                if not observers._add_execution_trace_observer(path):
                    raise RuntimeError("there is one already")
                observers._enable_execution_trace_observer()
        except (AttributeError, RuntimeError):
            os.unlink(path)
            return False
        self._path = path
        return True

    def end(self, tensors: Sequence[Any]) -> list[bool] | None:
        """For each of these whether its storage was touched since; None where the trace cannot be read. A tensor that no operator
        takes counts as touched."""
        asked = [self._ask(tensor) for tensor in tensors]
        numbers, touched = self._read()
        if not numbers and any(asked):
            return None
        order = iter(numbers)
        return [next(order, None) in touched if known else True for known in asked]

    def drop(self) -> None:
        """End it, and leave what it says."""
        if self._path:
            self._close()
            with contextlib.suppress(OSError):
                os.unlink(self._path)
            self._path = ""

    @staticmethod
    def _ask(tensor: Any) -> bool:
        try:
            with _disable_current_modes(), torch._C.DisableTorchFunction():
                torch.Tensor.is_set_to(tensor, tensor)
        except (RuntimeError, NotImplementedError, TypeError):
            return False
        return True

    @staticmethod
    def _close() -> None:
        """Autograd's threads may be about to leave their last operator, in the observer: it is switched off, they are given time
        to get out of it, and only then it is taken away, or they would find its memory freed."""
        observers = torch._C._profiler
        with _unsaid():
            observers._disable_execution_trace_observer()
            time.sleep(_LEAVING)
            observers._remove_execution_trace_observer()

    def _read(self) -> tuple[list[int], set[int]]:
        """The numbers of the storages that were asked for, in that order, and of those that the script has touched."""
        path, self._path = self._path, ""
        self._close()
        asked: list[tuple[int, int]] = []
        touched: set[int] = set()
        try:
            if os.path.getsize(path) <= LONGEST:
                with open(path, "rb") as file:
                    nodes = file.read().split(b'"id": ')[1:]
                for node in nodes:
                    storages = [int(number) for number in _STORAGE.findall(node)]
                    number, _, said = node.partition(b",")
                    if said.startswith(_ASKED):
                        asked.append((int(number), storages[0]))
                    else:
                        touched.update(storages)
        except (OSError, ValueError, IndexError):
            return [], set()
        finally:
            with contextlib.suppress(OSError):
                os.unlink(path)
        return [storage for _, storage in sorted(asked)], touched


@contextlib.contextmanager
def _unsaid() -> Iterator[None]:
    """What torch says on standard error when the observer is switched is not the script's: it is left out, and all else that is
    written there meanwhile is passed on."""
    try:
        kept = os.dup(2)
    except OSError:
        yield
        return
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            said.seek(0)
            for line in said:
                if _OURS not in line:
                    with contextlib.suppress(OSError):
                        os.write(2, line)
