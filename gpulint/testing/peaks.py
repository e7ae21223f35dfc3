"""The peak of one test: the most bytes that were allocated at once during its call, the lines that make it, who holds them.

What was on the device before the test's setup is not counted, unless it belongs to a fixture that the test asks for: so the
figure does not depend on which tests ran before.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field

import pytest

from gpulint.runtime.record.result import Site
from gpulint.testing.cpu import Pieces
from gpulint.testing.devices import by_line, holders_of, is_same, told
from gpulint.testing.fixtures import Fixtures
from gpulint.testing.gpu import Device
from gpulint.units import format_bytes

_MOST_HOLDERS = 4
_MOST_LOOKS = 5  # for holders, above the limit, each
_HIGHER = 1.5  # times as high as the one before


@dataclass(slots=True)
class Meter:
    """Measures a test, in bytes: made before its setup, begun before its call. Ended with `leave`, whatever happens."""

    device: Device
    fixtures: Fixtures
    item: pytest.Item
    root: str
    limit: int | None = None
    _before: Pieces = field(default_factory=dict)
    _foreign: Pieces = field(default_factory=dict)
    _by_card: list[int] = field(default_factory=list)
    _holders: tuple[str, ...] = ()
    _when: str = ""
    _looks: int = 0
    _final: list[int] | None = None

    def enter(self) -> None:
        """Before the setup: what is there now is not the test's."""
        self.device.enter()
        self.device.settle()
        self._before = self.device.live()

    def begin(self) -> None:
        """Before the call, or where a peak shall begin anew."""
        self.device.settle(wholly=False)
        own = self.fixtures.own(self.item, self._before)
        self._foreign = {
            key: piece
            for key, piece in self.device.live().items()
            if key not in own and is_same(piece, self._before.get(key))
        }
        self._by_card = [0] * len(self.device.levels())
        for key, piece in self._foreign.items():
            self._by_card[self.device.card_of(key)] += piece.size
        self._holders, self._looks, self._final = (), 0, None
        limit = None if self.limit is None else self.limit + max(self._by_card, default=0)
        self.device.begin_peak(limit, self._crossed)

    @property
    def begun(self) -> bool:
        """Whether there is anything to read."""
        return bool(self._by_card)

    @property
    def peak(self) -> int:
        """Bytes, of the card that has most."""
        return max(self._counted(), default=0)

    def note(self) -> None:
        """Remember the peak so far."""
        if self._final is None and self.begun:
            self.device.peaks()

    def _counted(self) -> list[int]:
        peaks = self.device.peaks() if self._final is None else self._final
        return [max(0, peak - foreign) for peak, foreign in zip(peaks, self._by_card, strict=False)]

    def _crossed(self, level: int) -> int | None:
        """While the limit is passed: who holds the memory can be found now, and not when the call has ended."""
        with contextlib.suppress(Exception):
            self._holders = self._held()
            self._when = f"when {format_bytes(level - max(self._by_card, default=0))} were allocated"
        self._looks += 1
        return int(level * _HIGHER) if self._looks < _MOST_LOOKS else None

    def _held(self) -> tuple[str, ...]:
        ours = {
            key: piece
            for key, piece in self.device.live().items()
            if not is_same(piece, self._foreign.get(key))
        }
        found = holders_of(self.device, ours, thoroughly=False)
        return tuple(f"{format_bytes(one.bytes)} held by {one.text}" for one in found[:_MOST_HOLDERS])

    @property
    def where(self) -> str:
        """Where it is measured, as a part of a sentence."""
        return told(self.device)

    def problem(self, allowed: int) -> str:
        """Why the peak is too high, in a few lines."""
        peak = self.peak
        head = (
            f"gpu_memory: the peak of this test is {format_bytes(peak)}, {format_bytes(allowed)} are allowed: "
            f"{format_bytes(peak - allowed)} too many ({self.where})"
        )
        return "\n".join([head, *self.evidence()])

    def lines(self) -> list[tuple[Site, int]]:
        """The lines alive at the peak, largest first."""
        ranked = sorted(self._composition().items(), key=lambda one: (-one[1], one[0]))
        return [(self.device.frames.sites[site], size) for site, size in ranked if size > 0]

    def evidence(self) -> list[str]:
        """The lines that make the peak, and who holds the memory: now, where it was not found out when the limit was passed."""
        said = by_line(self.device, self._composition(), self.root)
        if not said:
            said = [
                "which lines make it was not recorded: too many allocations, or the test records memory itself"
            ]
        when = self._when if self._holders else "now"
        said += [f"{when}: {holder}" for holder in self._holders or self._held()]
        foreign = self._by_card[self._card] if self._by_card else 0
        if foreign:
            said.append(f"{format_bytes(foreign)} that were there before the test do not count")
        return [f"  {one}" for one in said]

    @property
    def _card(self) -> int:
        """The position of the card that has most."""
        counted = self._counted()
        return counted.index(max(counted)) if counted else 0

    def _composition(self) -> dict[int, int]:
        card = self._card
        totals = dict(self.device.at_peak(card) or {})
        for key, piece in self._foreign.items():
            if self.device.card_of(key) == card and piece.site in totals:
                totals[piece.site] -= piece.size
        return totals

    def end(self) -> None:
        """After the call, and after it was read."""
        self._final = self.device.peaks()
        self.device.end_peak()

    def leave(self) -> None:
        """After the teardown."""
        self._before, self._foreign = {}, {}
        self.device.leave()
