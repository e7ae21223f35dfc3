"""Which memory belongs to fixtures that live on: what they made when they were set up, and what can be reached from them.

What a fixture of a module, a class or the session keeps is no test's: not the leak of the test that asked for it first, and
part of the peak of every test that asks for it.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import pytest

from gpulint.testing.cpu import Pieces
from gpulint.testing.devices import is_same, reached_from, tensors_on
from gpulint.testing.gpu import Device

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
