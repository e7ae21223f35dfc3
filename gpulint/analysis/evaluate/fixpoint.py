"""What rests on itself: values that are worked out while something that they rest on is, in rounds, until none changes any more.

The values that rest on each other are a strongly connected part of the whole. In a round each of them is worked out once, and what is
unfinished stands for what the round before has found of it, in the first for nothing at all. When the one that was begun first is done,
all are kept if what stood for them is what they are, and another round is gone if not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from gpulint.analysis.domain.values import BOTTOM, UNKNOWN, Assumption

if TYPE_CHECKING:
    from gpulint.analysis.evaluate.frames import Frame

MOST_ROUNDS: Final = 3  # values may grow in each, as a tuple does that is put into itself
MOST_DEEP: Final = 1_000  # of values that rest on each other, for Python's own stack
MOST_BELOW: Final = 40  # times that a value is left for what it rests on more deeply
TOO_MUCH: Final = UNKNOWN.assuming(Assumption("there is more to follow here than is followed"))
_NEVER: Final = 1 << 60

_At = tuple[Any, "Frame"]
_Work = Callable[[Any, "Frame"], Any]


class _TooDeep(Exception):
    """Something is to be worked out before those that wait for it: what `once` was asked."""


class Fixpoint:
    """Works out what is asked of frames, each once. `running` is what is being worked out; `worked_out` counts how often something was, for
    whoever has a budget."""

    def __init__(self) -> None:
        self.worked_out = 0
        self.running: dict[_At, int] = {}  # how deep each was begun
        self._reached_back = _NEVER  # the shallowest of what runs that was asked for
        self._round: dict[_At, tuple[Any, int]] = {}  # found in this round, and how far it reaches back
        self._resting: list[tuple[_At, dict[Any, Any]]] = []  # in order, and where each is kept in the end
        self._stands_for: dict[_At, Any] = {}  # what is unfinished: as it was in the round before
        self._used: dict[_At, Any] = {}  # what stood for something in this round
        self._below_others: set[_At] = set()  # what is worked out first, for others to rest on

    def once(self, known: dict[Any, Any], key: Any, frame: Frame, work: _Work, least: Any = BOTTOM) -> Any:
        """What `work` gives for a key in a frame, kept in `known`; `least` is the least that it may be."""
        if (found := known.get(key)) is not None:
            return found
        at = (key, frame)
        if (begun := self.running.get(at)) is not None:
            self._reached_back = min(self._reached_back, begun)
            found = self._used[at] = self._stands_for.get(at, least)
            return found
        if self._round and (kept := self._round.get(at)) is not None:
            self._reached_back = min(self._reached_back, kept[1])
            return kept[0]
        depth = len(self.running)
        if not depth:
            return self._from_the_bottom(known, at, work)
        if depth >= MOST_DEEP:
            if at in self._below_others or len(self._below_others) >= MOST_BELOW:
                return TOO_MUCH if least is BOTTOM else least
            raise _TooDeep(known, at, work)
        return self._worked_out(known, at, work, depth)

    def _from_the_bottom(self, known: dict[Any, Any], at: _At, work: _Work) -> Any:
        """The same for what nothing else waits for. What it rests on too deeply is worked out before it, from the bottom as well."""
        while True:
            try:
                return self._worked_out(known, at, work, 0)
            except _TooDeep as deeper:
                first = deeper.args
            finally:  # what only an earlier round has come to stands for nothing later
                for unfinished in (self._round, self._stands_for, self._used, self._resting):
                    unfinished.clear()
            self._reached_back = _NEVER
            self._below_others.add(first[1])
            self._from_the_bottom(*first)
            self._below_others.discard(first[1])

    def _worked_out(self, known: dict[Any, Any], at: _At, work: _Work, depth: int) -> Any:
        key, frame = at
        outer, since = self._reached_back, len(self._resting)
        for rounds in range(MOST_ROUNDS + 1):
            self.worked_out += 1
            self.running[at], self._reached_back = depth, _NEVER
            try:
                value = work(key, frame)  # not `*at`: Python would take a C frame for each
            finally:
                del self.running[at]
            if self._reached_back < depth:  # a part of something larger
                self._round[at] = value, self._reached_back
                self._resting.append((at, known))
                self._reached_back = min(outer, self._reached_back)
                return value
            if self._reached_back == _NEVER:  # rests on nothing that is unfinished
                break
            self._round[at] = value, depth
            self._resting.append((at, known))
            if self._is_settled(since, is_last=rounds == MOST_ROUNDS):
                break
        known[key] = value
        self._reached_back = outer
        return value

    def _is_settled(self, since: int, is_last: bool) -> bool:
        """Whether all that this round has found, after the first `since`, is what stood for it: then it is kept."""
        found = [(at, self._round.pop(at)[0], known) for at, known in self._resting[since:]]
        del self._resting[since:]
        stood = [(self._used.pop(at), value) for at, value, _ in found if at in self._used]
        is_settled = is_last or all(before == value for before, value in stood)
        for at, value, known in found:
            if is_settled:
                known[at[0]] = value
                self._stands_for.pop(at, None)
            else:
                self._stands_for[at] = value
        return is_settled
