"""The peak of one test: the most bytes that were allocated at once during its call, the lines that make it, who holds them.

What was on the device before the test's setup is not counted, unless it belongs to a fixture that the test asks for: so the
figure does not depend on which tests ran before.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace

import pytest

from gpulint.runtime.record.result import Site
from gpulint.testing.devices import Device, Pieces, by_line, holders_of, is_same, told
from gpulint.testing.fixtures import Fixtures
from gpulint.units import format_bytes

_MOST_HOLDERS = 4
_MOST_LOOKS = 5  # for holders, above the limit, each
_HIGHER = 1.5  # times as high as the one before


@dataclass(frozen=True, slots=True)
class Reading:
    """One test's peak. Sizes in bytes. `lines` are those alive at it, largest first; `holders` in words, with `when` they were
    looked for; `foreign` is what was there before and does not count."""

    peak: int
    reserved: int | None
    where: str
    card: str
    foreign: int
    lines: tuple[tuple[Site, int], ...] = ()
    said_lines: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()
    when: str = ""

    def problem(self, allowed: int) -> str:
        """Why the peak is too high, in a few lines."""
        head = (
            f"gpu_memory: the peak of this test is {format_bytes(self.peak)}, {format_bytes(allowed)} are allowed: "
            f"{format_bytes(self.peak - allowed)} too many ({self.where})"
        )
        return "\n".join([head, *self.evidence()])

    def evidence(self) -> list[str]:
        """The lines that make the peak, and who holds the memory."""
        said = [f"  {line}" for line in self.said_lines]
        if not said:
            said = [
                "  which lines make it was not recorded: too many allocations, or the test records memory itself"
            ]
        said += [f"  {self.when}: {holder}" for holder in self.holders]
        if self.foreign:
            said.append(f"  {format_bytes(self.foreign)} that were there before the test do not count")
        return said


@dataclass(slots=True)
class Meter:
    """Measures a test: made before its setup, begun before its call. Ended with `leave`, whatever happens."""

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

    def reading(self, lines: bool = True, holders: bool = True) -> Reading:
        """What was measured so far. `lines` asks for those that make the peak, `holders` for who holds the memory: each takes a
        moment."""
        counted = self._counted()
        peak = max(counted, default=0)
        card = counted.index(peak) if counted else 0
        foreign = self._by_card[card] if counted else 0
        reading = Reading(peak, self.device.reserved(), told(self.device), self.device.card, foreign)
        if not lines:
            return reading
        totals = self._composition(card)
        sites = self.device.frames.sites
        ranked = sorted(totals.items(), key=lambda one: (-one[1], one[0]))
        passed = self._holders
        return replace(
            reading,
            lines=tuple((sites[site], size) for site, size in ranked if size > 0),
            said_lines=tuple(by_line(self.device, totals, self.root)),
            holders=passed or (self._held() if holders else ()),
            when=self._when if passed else "now",
        )

    def _composition(self, card: int) -> dict[int, int]:
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
