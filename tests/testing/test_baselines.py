"""The file of committed peaks, and a run held against it and against limits: what is written is what is read, in an order that depends on
nothing, and broken files are said."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from gpulint.runtime.parent.verdict import Verification
from gpulint.runtime.record.peaks import CardUse, Gate, Limits, Peak, PeakLine, StretchPeak
from gpulint.runtime.record.peaks import LineAtPeak as Line
from gpulint.runtime.record.result import End, Environment, RankResult, RunResult, Site
from gpulint.testing import baselines
from gpulint.testing.baselines import BadBaseline, Key
from gpulint.testing.gate import foreign_contexts, judge, subject_of

ON_H200 = Key("train.py --epochs 1", "NVIDIA H200", "2.11")
CPU = Key("train.py --epochs 1", baselines.CPU, "2.13")
PEAK = Peak(
    10_000, 20_000, 0.0, {"start": 4_096, "evaluation": 9_000}, (Line("a.py", 3, "step", "y = f(x)", 512),)
)
ENTRY = '{"subject": "a", "card": "c", "torch": "2.11", "allocated": 1}'


def test_what_is_written_is_read_whatever_the_order(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.json")
    one = {ON_H200: PEAK, CPU: Peak(5)}
    other = {CPU: Peak(5), ON_H200: PEAK}
    baselines.write(path, one)
    assert baselines.read(path) == one == other
    text = Path(path).read_text()
    baselines.write(path, other)
    assert Path(path).read_text() == text
    assert os.listdir(tmp_path) == ["memory.json"]
    changed = baselines.add(path, {CPU: Peak(7)})
    assert (changed[ON_H200], changed[CPU]) == (PEAK, Peak(7))


def test_a_line_is_found_again_by_its_text_or_else_by_its_number() -> None:
    before = [Line("a.py", 3, "f", "x = y", 500), Line("a.py", 9, "f", "h = wide(64)", 500)]
    moved = Line("a.py", 5, "f", "x = y", 900)
    edited = Line("a.py", 9, "f", "h = wide(128)", 1_000)
    new = Line("a.py", 12, "f", "kept = x + 1", 100)
    found = baselines.grown([moved, edited, new], before)
    assert [(one.line, one.before, one.grew) for one in found] == [
        (edited.line, 500, 500),
        (moved.line, 500, 400),
        (new.line, None, 100),
    ]


def test_lines_of_one_function_that_read_alike_are_told_apart() -> None:
    before = [Line("a.py", n, "forward", "x = self.relu(x)", 100 * n) for n in (3, 5, 7)]
    moved = [Line("a.py", n + 1, "forward", "x = self.relu(x)", 100 * n) for n in (7, 3, 5)]
    assert baselines.grown(moved, before) == []
    (growth,) = baselines.grown([*moved, Line("a.py", 10, "forward", "x = self.relu(x)", 50)], before)
    assert (growth.line, growth.before, growth.grew) == (10, None, 50)


def test_a_line_that_the_full_list_lacks_may_have_had_as_much_as_its_last() -> None:
    before = [Line("a.py", n, "f", f"line {n}", 1_000) for n in range(baselines.MOST_LINES)]
    (growth,) = baselines.grown([Line("a.py", 99, "f", "new", 1_500)], before)
    assert (growth.before, growth.grew) == (None, 500)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not JSON"),
        ('{"schema": 1, "peaks": [', "is not JSON"),
        ("[]", "no entry `peaks`"),
        ('{"format": 1, "findings": []}', "no entry `peaks`"),
        ('{"schema": 2, "peaks": []}', "schema 2"),
        ('{"schema": 1, "peaks": {}}', "no list"),
        ('{"schema": 1, "peaks": [{"subject": "a"}]}', "cannot be read"),
        (
            '{"schema": 1, "peaks": [{"subject": "a", "card": "c", "torch": 2, "allocated": 1}]}',
            "expected str",
        ),
        (
            '{"schema": 1, "peaks": [{"subject": "a", "card": "c", "torch": "2", "allocated": -1}]}',
            "`a` below 0",
        ),
        (f'{{"schema": 1, "peaks": [{ENTRY}, {ENTRY}]}}', "two entries of `a`"),
        ("[" * 100_000, "is not JSON"),
        ("<<<<<<< HEAD", "is not JSON"),
    ],
)
def test_what_is_no_baseline_is_one_sentence(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "memory.json"
    path.write_text(text)
    with pytest.raises(BadBaseline, match=says) as raised:
        baselines.read(str(path))
    assert "\n" not in str(raised.value)
    assert str(path) in str(raised.value)


def test_what_is_missing_or_cannot_be_written_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, nowhere = tmp_path / "memory.json", str(tmp_path / "nowhere" / "memory.json")
    with pytest.raises(BadBaseline, match="there is no baseline"):
        baselines.read(str(path))
    assert baselines.read(str(path), missing_is_empty=True) == {}
    with pytest.raises(BadBaseline, match="could not be written"):
        baselines.write(nowhere, {})
    with pytest.raises(BadBaseline, match="does not exist"):
        baselines.check_writable(nowhere)
    baselines.check_writable(str(path))
    path.touch()
    monkeypatch.setattr(os, "access", lambda one, _: one != str(path))  # root may write everywhere
    with pytest.raises(BadBaseline, match=r"memory\.json cannot be written to"):
        baselines.check_writable(str(path))


def test_what_a_later_gpulint_or_an_editor_on_windows_writes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    baselines.write(str(path), {ON_H200: PEAK})
    data = json.loads(path.read_text())
    data["peaks"][0]["colour"] = "blue"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(data, indent=1).replace("\n", "\r\n").encode())
    assert baselines.read(str(path))[ON_H200] == PEAK


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.json")
    assert baselines.relative_to(path, str(tmp_path / "src" / "train.py")) == "src/train.py"
    assert baselines.relative_to(path, "") == ""
    assert baselines.torch_minor("2.11.0+cu130") == "2.11"
    assert baselines.torch_minor("2.13.0a0+git1") == "2.13"


# -- a run held against limits: records in, checks out; what is measured is in test_gate_runs.py -------------


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
