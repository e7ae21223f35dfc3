"""A run held against limits: records in, checks out. What is measured is in test_gate_runs.py."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpulint.runtime.parent.verdict import Verification
from gpulint.runtime.record.peaks import CardUse, Gate, Limits, PeakLine, StretchPeak
from gpulint.runtime.record.result import End, Environment, RankResult, RunResult, Site
from gpulint.testing import baselines
from gpulint.testing.baselines import Key
from gpulint.testing.gate import foreign_contexts, judge, subject_of

MIB = 1024**2
H200 = Environment(
    "3.12", "python", "linux", "2026-11-22", "2.11.0+cu130", "cuda", "NVIDIA H200", probe="cuda-allocator"
)
COMMAND = "gpulint verify --baseline memory.json --write-baseline train.py"


def rank(number: int = 0, steps: int = 100, lines: tuple[PeakLine, ...] = (), **others: int) -> RankResult:
    peaks = [StretchPeak("steps", steps * MIB, 200 * MIB, steps * MIB, lines)]
    peaks += [StretchPeak(name, size * MIB) for name, size in others.items()]  # type: ignore[arg-type]
    return RankResult(number, 2, H200, End("stopped", "stopped"), peaks=tuple(peaks))


def run(*ranks: RankResult) -> RunResult:
    numbered = tuple(replace(one, world_size=len(ranks)) for one in ranks)
    return RunResult(("python",), End("stopped", "stopped after 20 sampled steps"), 1.0, numbered)


def judged(result: RunResult, limits: Limits) -> Gate:
    return judge(result, limits, "train.py", COMMAND)


def test_the_whole_run_is_held_against_the_limit_and_the_stretch_is_named() -> None:
    gate = judged(run(rank(evaluation=130, start=90)), Limits(max_peak=120 * MIB))
    (check,) = gate.exceeded
    assert (check.stretch, check.now, check.allowed) == ("evaluation", 130 * MIB, 120 * MIB)
    assert "10.00 MiB more than the 120.00 MiB of --max-peak" in check.text
    assert "at most 100.00 MiB in the sampled steps" in check.text
    assert judged(run(rank(evaluation=130)), Limits(max_peak=130 * MIB)).exceeded == ()


def test_the_largest_rank_decides_and_each_is_there() -> None:
    gate = judged(run(rank(0, 100), rank(1, 140)), Limits(max_peak=120 * MIB))
    (check,) = gate.exceeded
    assert check.rank == 1
    assert "on rank 1" in check.text
    assert [peak.allocated for peak in gate.ranks] == [100 * MIB, 140 * MIB]


def written(tmp_path: Path, result: RunResult, tolerance: float = 1.0) -> Limits:
    limits = Limits(baseline=str(tmp_path / "memory.json"), tolerance=tolerance)
    assert judged(result, replace(limits, write=True)).written == len(result.ranks)
    return limits


def test_of_a_run_that_the_time_was_up_for_nothing_is_written(tmp_path: Path) -> None:
    limits = written(tmp_path, run(rank()))
    before = Path(limits.baseline).read_text()
    cut = replace(run(rank(0, 50)), end=End("timeout", "the time was up"))
    gate = judged(cut, replace(limits, write=True, max_peak=20 * MIB))
    assert Path(limits.baseline).read_text() == before
    assert gate.written is None
    assert gate.problems == (
        f"the time was up before the run was at its end: nothing was written to {limits.baseline}",
    )
    assert gate.exceeded


@pytest.mark.parametrize(
    ("steps", "tolerance", "statuses", "exit_code"),
    [
        ((100, 60), 1.0, ["exceeded", "within"], 1),  # the smaller rank alone
        ((90, 50), 1.0, ["fell", "within"], 0),
        ((110, 50), 10.0, ["within", "within"], 0),
        ((111, 50), 10.0, ["exceeded", "within"], 1),
    ],
)
def test_what_grew_beyond_the_tolerance_fails_and_what_fell_is_said(
    tmp_path: Path, steps: tuple[int, int], tolerance: float, statuses: list[str], exit_code: int
) -> None:
    limits = written(tmp_path, run(rank(0, 100), rank(1, 50)), tolerance)
    gate = judged(run(rank(0, steps[0]), rank(1, steps[1])), limits)
    assert [check.status for check in gate.checks] == statuses
    assert all(("renew the baseline" in check.text) is (check.status == "fell") for check in gate.checks)
    assert Verification("train.py", sampled(gate), gate=gate).exit_code == exit_code


def test_a_stretch_that_one_run_did_not_come_to_is_said(tmp_path: Path) -> None:
    limits = written(tmp_path, run(rank(0, 100, evaluation=120)))
    gate = judged(run(rank(0, 100, later=500)), limits)
    assert gate.exceeded == ()
    assert gate.notes == ("the evaluation was not compared: this run did not come to it",)


def sampled(gate: Gate) -> RunResult:
    from gpulint.runtime.record.result import Sample

    return run(replace(rank(), samples=(Sample(1, "train", True, 1.0, 0.1),)))


def test_that_the_disk_is_full_costs_nobody_the_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "no space is left on the disk")

    monkeypatch.setattr(baselines, "write_atomic", full)
    limits = Limits(max_peak=90 * MIB, baseline=str(tmp_path / "memory.json"), write=True)
    gate = judged(run(rank(0, 100)), limits)
    assert [check.limit for check in gate.exceeded] == ["max-peak"]
    (problem,) = gate.problems
    assert "could not be written: no space is left on the disk" in problem
    assert Verification("train.py", sampled(gate), gate=gate).exit_code == 2


def test_another_number_of_ranks_is_another_entry_and_a_silent_rank_no_green_run(tmp_path: Path) -> None:
    limits = written(tmp_path, run(rank(0, 100), rank(1, 100)))
    (problem,) = judged(run(rank(0, 100)), limits).problems
    assert "on 2 ranks" in problem
    gate = judged(run(rank(0), replace(rank(1), peaks=())), Limits(max_peak=500 * MIB))
    assert gate.problems == ("rank 1 ended before its peak was known",)


def test_an_entry_keeps_nothing_of_this_machine(tmp_path: Path) -> None:
    script = tmp_path / "src" / "train.py"
    script.parent.mkdir()
    script.write_text("x = 1\n")
    line = PeakLine(str(script), 1, "main", MIB)
    limits = written(tmp_path, run(rank(0, 100, (line,), later=300)))
    text = Path(limits.baseline).read_text()
    assert str(tmp_path) not in text
    assert "later" not in text  # how far a run gets after the sampled steps is the machine's speed
    peak = baselines.read(limits.baseline).get(Key("train.py", "NVIDIA H200", "2.11"))
    assert peak is not None
    assert peak.lines[0].file == "src/train.py"
    assert subject_of(str(script), ["--lr", "a b"], False, limits.baseline) == "src/train.py --lr 'a b'"
    assert subject_of("project.train", [], True, limits.baseline) == "-m project.train"


# -- contexts --------------------------------------------------------------------------------------------------


def use(index: int, own: bool, context: bool) -> CardUse:
    return CardUse(index, "NVIDIA H200", f"aaaa-{index}", own, context, 0, 0)


def test_a_context_on_the_card_of_another_rank_is_named() -> None:
    first = replace(rank(0), cards=(use(0, True, True), use(1, False, False)), pid=11)
    second = replace(
        rank(1),
        cards=(use(0, False, True), use(1, True, True)),
        pid=12,
        first_use=Site("/x/train.py", 7, "main"),
    )
    (found,) = foreign_contexts(run(first, second), {("aaaa-0", 12): 500 * MIB})
    assert (found.rank, found.card, found.owner, found.bytes) == (1, 0, 0, 500 * MIB)
    assert "train.py:7" in found.text
    assert "set_device(local_rank)" in found.text
    (unsized,) = foreign_contexts(run(first, second), {})
    assert unsized.bytes is None
    assert "does not tell" in unsized.text


def test_a_rank_with_cards_of_its_own_has_no_foreign_context() -> None:
    first = replace(rank(0), cards=(use(0, True, True), use(1, False, True)))
    second = replace(rank(1), cards=(use(2, True, True), use(3, False, True)))
    assert foreign_contexts(run(first, second), {}) == ()
