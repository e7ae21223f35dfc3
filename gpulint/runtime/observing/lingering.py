"""What the harness does once enough steps are sampled, and before it ends the script: it goes on without watching.

For three ends: places of interest that have not run yet may be reached (an evaluation at the epoch's end), and what looks like a
leak may turn out to be let go of (a list that is emptied every fifty steps), and the loops around
the steps may come round often enough to tell what outlives their rounds. Nothing that was found before is judged anew,
but for what was let go of while the same loop went on.
"""

from __future__ import annotations

import contextlib
import os
import time
import weakref
from collections.abc import Iterator
from types import FrameType

from gpulint.runtime.probes.frames import Activation, activation

HOLD_STEPS = 100  # steps in which a leak has the chance to be let go of
HOLD_SECONDS = 10.0
ROOM = 0.5  # of the memory that is free, which a leak may fill meanwhile
# Of the reach, in which loops around the steps may come round; more where sampling took long
ROUNDS_SHARE = 1 / 6
ROUNDS_TIMES = 6.0  # what sampling took: where it took most of one round, three more end in that


class Lingering:
    """The time after the sampled steps. `reach` are the seconds it may take, `sampling` those that they took, `awaiting` says that
    places of interest have not run yet."""

    def __init__(self, reach: float, sampling: float, awaiting: bool) -> None:
        self.awaiting = awaiting
        self._rounds = min(reach, max(ROUNDS_SHARE * reach, ROUNDS_TIMES * sampling))
        self._begin = time.monotonic()
        self._reach = reach
        self._steps = 0
        self._most = 0
        self._frames: list[weakref.ref[Activation]] = []

    @property
    def expired(self) -> bool:
        """Whether the time is up."""
        return self.seconds >= self._reach

    @property
    def waits_for_rounds(self) -> bool:
        """Whether there is time yet for loops around the steps to come round."""
        return self.seconds < self._rounds

    @property
    def seconds(self) -> float:
        """How long it has lasted."""
        return time.monotonic() - self._begin

    def hold(self, frames: Iterator[FrameType], per_step: float, free: int | None) -> None:
        """From now on see whether what leaks `per_step` bytes is let go of, while each of the running `frames` runs on.
        `free` are the bytes that are left for it."""
        room = HOLD_STEPS if free is None or per_step <= 0 else int(ROOM * free / per_step)
        self._most = min(HOLD_STEPS, room)
        if per_step > 0:
            self._rounds = 0.0  # it is known, and may fill the memory
        for frame in frames:
            call = activation(frame)
            if call is not None:
                self._frames.append(weakref.ref(call))

    def step(self) -> None:
        """A step has passed unwatched."""
        self._steps += 1

    def loop_is_over(self) -> None:
        """The loop in which steps were sampled has ended: what is let go of now was kept as long as it ran."""
        self._most = 0

    @property
    def holding(self) -> bool:
        """Whether it is still open if what leaked is let go of."""
        if any(reference() is None for reference in self._frames):
            self._most = 0
        return self._steps < self._most and self.seconds < HOLD_SECONDS

    @property
    def held(self) -> int:
        """In how many further steps of the same loop it could have been let go of; 0 where that cannot be said."""
        return self._steps if self._most and not self.holding else 0


def free_host_memory() -> int | None:
    """Bytes that the machine still has, where it says."""
    with contextlib.suppress(OSError, ValueError), open("/proc/meminfo", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None
