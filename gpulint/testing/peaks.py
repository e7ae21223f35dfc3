"""The peak of one test: the most bytes that were allocated at once during its call, the lines that make it, who holds them. And which
memory belongs to fixtures that live on: what they made when they were set up, and what can be reached from them.

What was on the device before the test's setup is not counted, unless it belongs to a fixture that the test asks for: so the
figure does not depend on which tests ran before. What a fixture of a module, a class or the session keeps is no test's: not the leak of
the test that asked for it first, and part of the peak of every test that asks for it.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from gpulint.runtime.record.result import Site
from gpulint.testing.devices import (
    Device,
    Pieces,
    by_line,
    holders_of,
    is_same,
    reached_from,
    tensors_on,
    told,
)
from gpulint.units import format_bytes

_GENERATORS = (types.GeneratorType, types.AsyncGeneratorType)


class Left(NamedTuple):
    """What a fixture had made and what is now nobody's, because its scope has ended."""

    fixture: str
    pieces: Pieces


class Fixtures:
    """The fixtures that are set up now. `set_up` and `finished` are told by pytest's hooks."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._alive: dict[int, Any] = {}
        self._born: dict[int, Pieces] = {}
        self.ended: list[Left] = []

    def before(self, fixturedef: Any) -> Pieces | None:
        """What is alive before a fixture is set up; None for a fixture of one test, which ends with that."""
        return None if fixturedef.scope == "function" else tensors_on(self._device)

    def set_up(self, fixturedef: Any, before: Pieces | None) -> None:
        """It is set up, even if that failed. What came meanwhile is its own, unless another's that it asked for."""
        self._alive[id(fixturedef)] = fixturedef
        if before is None:
            return
        others = [pieces for number, pieces in self._born.items() if number != id(fixturedef)]
        self._born[id(fixturedef)] = {
            key: piece
            for key, piece in tensors_on(self._device).items()
            if not is_same(piece, before.get(key))
            and not any(is_same(piece, pieces.get(key)) for pieces in others)
        }

    def finished(self, fixturedef: Any) -> None:
        """It has been torn down: what it made should be gone."""
        if self._alive.pop(id(fixturedef), None) is not None:
            pieces = self._born.pop(id(fixturedef), {})
            if pieces:
                self.ended.append(Left(name_of(fixturedef), pieces))

    def owners(self, pieces: Pieces) -> dict[Hashable, int]:
        """Which of the pieces belong to a fixture that lives on, and to which, by a number that `keep` takes."""
        found: dict[Hashable, int] = {}
        for number, fixturedef in self._alive.items():
            rest = {key: piece for key, piece in pieces.items() if key not in found}
            if fixturedef.scope != "function" and rest:
                found |= dict.fromkeys(self._of(number, fixturedef, rest), number)
        return found

    def keep(self, owners: dict[Hashable, int], pieces: Pieces) -> None:
        """What a test put into a fixture is the fixture's: to be looked for when its scope ends."""
        for key, number in owners.items():
            self._born.setdefault(number, {})[key] = pieces[key]

    def own(self, item: pytest.Item, pieces: Pieces) -> set[Hashable]:
        """Which of the pieces belong to the fixtures that a test asks for."""
        wanted = set(getattr(item, "fixturenames", ()))
        found: set[Hashable] = set()
        for number, fixturedef in self._alive.items():
            if fixturedef.argname in wanted:
                found |= self._of(number, fixturedef, pieces)
        return found

    def _of(self, number: int, fixturedef: Any, pieces: Pieces) -> set[Hashable]:
        born = self._born.get(number, {})
        found = {key for key, piece in pieces.items() if is_same(piece, born.get(key))}
        return found | reached_from(self._device, list(_roots(fixturedef)), pieces)


def name_of(fixturedef: Any) -> str:
    """`session fixture model`; of the functions that pytest makes fixtures of, what they are called in the code."""
    name = str(fixturedef.argname)
    for setup in ("setup_module", "setup_class", "setUpClass", "setUpModule"):
        if name.startswith(("_xunit_", "_unittest_")) and setup in name:
            return f"{setup} of {getattr(fixturedef, 'baseid', '') or 'the module'}"
    return f"{fixturedef.scope} fixture {name}"


def _roots(fixturedef: Any) -> Iterable[Any]:
    """The value of a fixture, the generator that will tear it down, and what `addfinalizer` was given."""
    cached = fixturedef.cached_result
    if cached is not None and cached[2] is None:
        yield cached[0]
    for finalizer in list(getattr(fixturedef, "_finalizers", ())):
        if isinstance(finalizer, functools.partial):
            yield from (one for one in finalizer.args if isinstance(one, _GENERATORS))
        elif isinstance(finalizer, types.FunctionType):
            yield finalizer


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
        live = self.device.live().items()
        ours = {key: piece for key, piece in live if not is_same(piece, self._foreign.get(key))}
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
        unknown = (
            "which lines make it was not recorded: too many allocations, or the test records memory itself"
        )
        said = said or [unknown]
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
