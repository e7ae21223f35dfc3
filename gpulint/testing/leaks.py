"""What each test leaves on the device after its teardown: `--gpu-memory-leaks`."""

from __future__ import annotations

import time
from typing import Final

import pytest

from gpulint.testing.asking import ALLOW_LEAK, ALLOWED_LEAKS, Misuse, allowed_leaks, asked, matches
from gpulint.testing.devices import Device, Pieces, births_of, holders_of, is_same, told
from gpulint.testing.peaks import Fixtures
from gpulint.testing.telling import Leftover

SEARCHING: Final = 120.0  # seconds of a session that searches for holders may take
_MOST_HOLDERS: Final = 3


class Leaks:
    """Looks at the device after each test. Lives in the process that runs the tests."""

    def __init__(self, device: Device, fixtures: Fixtures, config: pytest.Config) -> None:
        self._device = device
        self._fixtures = fixtures
        self._root = str(config.rootpath)
        self._above: int = config.option.gpu_memory_leaks_above
        self._allowed_leaks = allowed_leaks(config)
        self._searched = 0.0
        device.enter()
        device.settle()
        self._before, self._levels = device.live(), device.levels()  # what is there now is nobody's

    @property
    def where(self) -> str:
        """Where it is measured."""
        return told(self._device)

    def stop(self) -> None:
        """After the last test."""
        self._device.leave()

    def after(self, item: pytest.Item) -> list[Leftover]:
        """What the test that has just ended left, its fixtures torn down and its reports made."""
        for wholly in (None, False, True):  # the next only where the one before has left something
            if wholly is not None:
                self._device.settle(wholly)
            if self._device.levels() == self._levels and not self._fixtures.ended:
                return []
        now = self._device.live()
        left = [(fixture, pieces) for fixture, pieces in self._of_ended(now) if pieces]
        known = {key for _, pieces in left for key in pieces}
        fresh = {
            key: piece
            for key, piece in now.items()
            if key not in known and not is_same(piece, self._before.get(key))
        }
        owners = self._fixtures.owners(fresh)
        self._fixtures.keep(owners, fresh)
        rest = {key: piece for key, piece in fresh.items() if key not in owners}
        self._before, self._levels = now, self._device.levels()
        left += [("", rest)] if rest else []
        found = (self._leftover(item, pieces, owner) for owner, pieces in left)
        return [one for one in found if one.size > self._above]

    def _of_ended(self, now: Pieces) -> list[tuple[str, Pieces]]:
        """What is there yet of fixtures whose scope has ended; what another fixture keeps is that one's."""
        found = []
        for left in self._fixtures.ended:
            pieces = {key: now[key] for key, piece in left.pieces.items() if is_same(now.get(key), piece)}
            owners = self._fixtures.owners(pieces)
            self._fixtures.keep(owners, pieces)
            found.append((left.fixture, {key: piece for key, piece in pieces.items() if key not in owners}))
        self._fixtures.ended.clear()
        return found

    def _leftover(self, item: pytest.Item, pieces: Pieces, owner: str) -> Leftover:
        size = sum(piece.size for piece in pieces.values())
        allowed = self._allowed(item, size)
        return Leftover(
            item.nodeid,
            size,
            len(pieces),
            self.where,
            owner,
            () if allowed else self._holders(pieces),
            tuple(births_of(self._device, pieces, self._root)),
            allowed,
        )

    def _holders(self, pieces: Pieces) -> tuple[str, ...]:
        if self._searched > SEARCHING:
            return (f"(not looked for: {SEARCHING:.0f} s were spent on the tests before)",)
        begin = time.perf_counter()
        try:
            found = holders_of(self._device, pieces)
        except Exception as error:  # a test's objects may do anything when they are looked at
            return (f"(could not be looked for: {type(error).__name__}: {error})",)
        finally:
            self._searched += time.perf_counter() - begin
        texts = [one.text for one in found]
        more = texts[_MOST_HOLDERS:]
        return (*texts[:_MOST_HOLDERS], *([f"{len(more)} others"] if more else []))

    def _allowed(self, item: pytest.Item, size: int) -> str:
        """Why what a test leaves is allowed; "" where it is not."""
        try:
            allowed = asked(item, ALLOW_LEAK)
        except Misuse:  # told when the test was collected
            allowed = None
        if allowed is not None and (allowed.most is None or size <= allowed.most):
            return str(allowed.reason)
        for pattern, most in self._allowed_leaks:
            if matches(pattern, item.nodeid) and (most is None or size <= most):
                return f"{ALLOWED_LEAKS}: {pattern}"
        return ""
