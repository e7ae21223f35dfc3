"""Which fixes are kept: tried together, then alone where there are runs enough, else in halves until the guilty one is alone.

Knows nothing of scripts: `attempt` tries some fixes and says what came of it, or None where no run is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpulint.runtime.record.result import RunResult
from gpulint.trial.plan import Gain, Judged, Status, TrialFix, gains_between, pays

OUT_OF_RUNS = "the runs were used up before it was its turn; more are allowed with --max-runs"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run with some fixes. `text` is what it did wrong; empty where it computes what the script computes."""

    status: Status
    text: str
    gains: tuple[Gain, ...] = ()
    run: RunResult | None = None

    @property
    def is_clean(self) -> bool:
        return self.status in ("pays", "changes nothing")


Fixes = Sequence[TrialFix]
Attempt = Callable[[Fixes], Outcome | None]


class Sorting:
    """Sorts fixes out. `left` says how many runs there are still. Afterwards `judged` has all fixes that were given, and `kept`
    those that pay."""

    def __init__(self, attempt: Attempt, left: Callable[[], int]) -> None:
        self._attempt = attempt
        self._left = left
        self.judged: dict[int, Judged] = {}
        self.kept: list[TrialFix] = []
        self.final: Outcome | None = None

    def sort(self, together: Fixes, apart: Fixes = ()) -> None:
        """`together` can be tried at once, `apart` overlap others of them and are tried alone if at all."""
        every = [*together, *apart]
        whole = self._attempt(together) if together else None
        if len(every) > 1 and self._left() > len(every):
            self._one_by_one(every, whole if not apart else None)
        elif whole is not None:
            self._in_halves(together, whole)
        for fix in every:
            self.judged.setdefault(fix.number, Judged(fix, "not tried", OUT_OF_RUNS))

    # -- one by one --------------------------------------------------------------------------------------------

    def _one_by_one(self, every: Fixes, whole: Outcome | None) -> None:
        """Each alone: its gain is its own. What brings nothing alone may yet bring something with others."""
        clean: dict[int, Outcome] = {}
        for fix in every:
            outcome = self._attempt([fix])
            if outcome is None:
                continue
            self._judge([fix], outcome)
            if outcome.is_clean:
                clean[fix.number] = outcome
        paying = [fix for fix in every if fix.number in clean and clean[fix.number].status == "pays"]
        idle = [fix for fix in every if fix.number in clean and fix not in paying]
        if idle and not self._idle_are_idle(paying, idle, whole if len(clean) == len(every) else None):
            return
        self._keep([[fix] for fix in sorted(paying, key=lambda fix: -_weight(clean[fix.number]))])

    def _idle_are_idle(self, paying: list[TrialFix], idle: list[TrialFix], whole: Outcome | None) -> bool:
        """Whether the fixes that bring nothing alone bring nothing with the others either. Keeps all where they do."""
        if whole is None or not whole.is_clean or whole.status != "pays":
            return True
        best = self._attempt(paying) if paying else None
        if paying and (best is None or not best.is_clean or not _is_cheaper(whole, best)):
            return True
        self.kept, self.final = [*paying, *idle], whole
        for fix in sorted(idle, key=lambda fix: fix.is_safe):
            if not self._is_superfluous(fix):
                self.judged[fix.number] = Judged(fix, "pays", "", whole.gains, alone=False)
        return False

    def _is_superfluous(self, fix: TrialFix) -> bool:
        """Whether what is kept saves as much without this fix, which is then left out."""
        others = [one for one in self.kept if one is not fix]
        without = self._attempt(others) if others else None
        assert self.final is not None
        if without is None or without.status != "pays" or _is_cheaper(self.final, without):
            return False
        self.kept, self.final = others, without
        return True

    # -- in halves ---------------------------------------------------------------------------------------------

    def _in_halves(self, group: Fixes, whole: Outcome) -> None:
        """Where the fixes together are not clean, they are halved until those that are not are alone."""
        clean: list[tuple[list[TrialFix], Outcome]] = []
        dirty: list[tuple[list[TrialFix], Outcome]] = []
        (clean if whole.is_clean else dirty).append((list(group), whole))
        while dirty:
            part, outcome = dirty.pop()
            if len(part) == 1:
                self._judge(part, outcome)
                continue
            middle = len(part) // 2
            for half in (part[:middle], part[middle:]):
                tried = self._attempt(half) if self._left() > 1 else None  # one is left for what is kept
                if tried is not None:
                    (clean if tried.is_clean else dirty).append((half, tried))
        for part, outcome in clean:
            self._judge(part, outcome)
        paying = [(part, outcome) for part, outcome in clean if outcome.status == "pays"]
        paying.sort(key=lambda pair: -_weight(pair[1]))
        self._keep([part for part, _ in paying])

    # -- what is kept ------------------------------------------------------------------------------------------

    def _keep(self, groups: list[list[TrialFix]]) -> None:
        """Keep the groups, best first: all of them where they are clean together, else one after the other."""
        every = [fix for group in groups for fix in group]
        if not every:
            return
        final = self._attempt(every)
        if final is not None and final.is_clean:
            self.kept, self.final = every, final
            return
        for group in groups:
            outcome = self._attempt([*self.kept, *group])
            if outcome is not None and outcome.is_clean:
                self.kept, self.final = [*self.kept, *group], outcome
            elif outcome is None:
                self._reject(group, "not tried", OUT_OF_RUNS)
            else:
                others = ", ".join(f"{fix.codes} in line {fix.shown.line}" for fix in self.kept)
                self._reject(group, outcome.status, f"together with {others}: {outcome.text}")

    def _reject(self, group: Fixes, status: Status, text: str) -> None:
        for fix in group:
            self.judged[fix.number] = Judged(fix, status, text)

    def _judge(self, part: Fixes, outcome: Outcome) -> None:
        alone = len(part) == 1
        for fix in part:
            self.judged[fix.number] = Judged(fix, outcome.status, outcome.text, outcome.gains, alone)


def _weight(outcome: Outcome) -> float:
    """How much an outcome saves, to compare with others: shares of what there was."""
    return sum(gain.share for gain in outcome.gains if gain.is_better)


def _is_cheaper(one: Outcome, other: Outcome) -> bool:
    """Whether one outcome saves more than another, beyond noise, and nowhere less."""
    assert one.run is not None
    assert other.run is not None
    return pays(gains_between([other.run], one.run), by_time=False)
