"""Which fixes are kept, by made-up outcomes: no script runs here."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from gpulint.findings import Edit, Finding, Fix, Position, Severity
from gpulint.runtime.record.result import End, RunResult
from gpulint.trial.plan import Gain, TrialFix
from gpulint.trial.sorting import Fixes, Outcome, Sorting

RUN = RunResult((), End("finished", "done"), 1.0)
SAVED = Gain("peak", "bytes", 1000, 500, 0, True)


def fix(number: int) -> TrialFix:
    edit = Edit(Position(number, 1), Position(number, 2), "x")
    found = Finding(f"GPU{number:03}", "made", Severity.INFO, "made", "a.py", number, 1, number, 2)
    return TrialFix(number, (replace(found, fix=Fix("safe", "made", (edit,))),))


def outcome(status: str) -> Outcome:
    saved = (SAVED,) if status == "pays" else ()
    return Outcome(status, "" if status in ("pays", "changes nothing") else "wrong", saved, RUN)  # type: ignore[arg-type]


class Bench:
    """Answers by a rule on the numbers of the fixes, and counts runs; the same fixes are run once."""

    def __init__(self, rule: Callable[[set[int]], str], runs: int = 100) -> None:
        self.rule, self.runs = rule, runs
        self.known: dict[frozenset[int], Outcome] = {}
        self.sorting = Sorting(self.attempt, lambda: self.runs - len(self.known))

    def attempt(self, fixes: Fixes) -> Outcome | None:
        key = frozenset(one.number for one in fixes)
        if key not in self.known:
            if len(self.known) >= self.runs:
                return None
            self.known[key] = outcome(self.rule(set(key)))
        return self.known[key]

    def sort(self, number: int, apart: int = 0) -> dict[int, str]:
        every = [fix(n) for n in range(1, number + 1)]
        self.sorting.sort(every[: number - apart], every[number - apart :])
        return {n: one.status for n, one in self.sorting.judged.items()}

    @property
    def kept(self) -> set[int]:
        return {one.number for one in self.sorting.kept}


def wrong(bad: set[int]) -> Callable[[set[int]], str]:
    return lambda chosen: "changes the result" if chosen & bad else "pays"


@pytest.mark.parametrize("bad", [{1}, {5}, {8}, {2, 7}, {4, 5}])
def test_the_guilty_are_found_by_halves(bad: set[int]) -> None:
    bench = Bench(wrong(bad), runs=9 if len(bad) == 1 else 15)
    statuses = bench.sort(8 if len(bad) == 1 else 14)
    found = {n for n, status in statuses.items() if status == "changes the result"}
    assert found == bad
    assert bench.kept == set(statuses) - bad


def test_a_clean_group_of_many_is_judged_as_a_group() -> None:
    bench = Bench(wrong(set()), runs=3)
    assert set(bench.sort(20).values()) == {"pays"}
    assert not any(one.alone for one in bench.sorting.judged.values())
    assert len(bench.known) == 1


def test_what_the_runs_do_not_suffice_for_is_said_and_not_kept() -> None:
    bench = Bench(wrong({3}), runs=2)
    statuses = bench.sort(8)
    assert statuses[3] == "not tried"
    assert all(n not in bench.kept for n, status in statuses.items() if status != "pays")


def test_what_pays_together_is_kept_without_those_that_add_nothing() -> None:
    bench = Bench(lambda chosen: "pays" if {1, 2} <= chosen else "changes nothing")
    assert bench.sort(3) == {1: "pays", 2: "pays", 3: "changes nothing"}
    assert bench.kept == {1, 2}


def test_fixes_that_are_right_alone_and_wrong_together_are_not_both_kept() -> None:
    bench = Bench(lambda chosen: "changes the result" if {1, 2} <= chosen else "pays")
    statuses = bench.sort(3)
    assert sorted(statuses.values()) == ["changes the result", "pays", "pays"]
    assert not {1, 2} <= bench.kept
    assert 3 in bench.kept


def test_fixes_that_overlap_are_tried_alone() -> None:
    bench = Bench(lambda chosen: "breaks" if 3 in chosen else "pays")
    assert bench.sort(3, apart=1) == {1: "pays", 2: "pays", 3: "breaks"}
    assert bench.kept == {1, 2}
