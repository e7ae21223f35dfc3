"""What the head of a report says of memory, and what becomes of it: phases, harmless growth, unexplained growth."""

import io
import time
from dataclasses import replace
from typing import Any

import pytest
from made import drift, finding, holder, ran, rank, samples, text_of, verified

from gpulint.reports.verify import as_json, progress
from gpulint.reports.verify.words import movement_text
from gpulint.runtime.parent.growth import phases
from gpulint.runtime.parent.runner import Run
from gpulint.runtime.record.result import (
    Drift,
    End,
    Holder,
    Progress,
    RankResult,
    Sample,
    StepKind,
    said_steps,
)


def grown(status: str, kind: StepKind = "train", place: str = "device", reason: str = "why") -> Drift:
    return drift(8192.0, status, place, kind=kind, reason=reason)


def keeper(scope: str = "global", place: str = "device") -> Holder:
    return holder(16 * 8192, text="list `kept`", variable="kept", scope=scope, place=place)


def on_cpu(steps: list[Sample], **more: Any) -> RankResult:
    return rank(steps, "cpu", **more)


KEPT = 32768
RISING = [10_000 + 8192 * n for n in range(24)]


def loop(*given: Any, **more: Any) -> list[Sample]:
    """Its first step is warm-up."""
    return samples(*given, **{"warmup": 1, **more})


def test_training_and_evaluation_are_counted_apart() -> None:
    training = loop([10_000] * 23, warmup=3)
    loops = [s for n in range(3) for s in loop([10_000 + 800 * i for i in range(8)], "eval", begin=100.0 * n)]
    found = phases(on_cpu([*training, *loops]))
    assert [phase.headline for phase in found] == [
        "training: 20 steps sampled after 3 of warm-up",
        "evaluation: 21 steps sampled in 3 loops after 3 of warm-up",
    ]
    moved = [next(one for one in phase.figures if one.figure == "allocated") for phase in found]
    assert movement_text(moved[0]).endswith(", flat")
    assert (moved[1].slope, moved[1].within) == (800.0, True)
    assert movement_text(moved[1]).endswith("+800 B a step within a loop")
    seen = on_cpu([*training, *loops], lines=(ran(sampled=24),))
    refuted = verified(seen, findings=(finding(subject="kept"),)).verdicts[0]
    assert refuted.text == "the line ran in 24 of the steps that were judged, and nothing grew"
    data = as_json(verified(on_cpu([*training, *loops])))
    assert data["sampled_steps"] == 20
    told = [(phase["kind"], phase["sampled"], phase["loops"]) for phase in data["phases"]]
    assert told == [("train", 20, 1), ("eval", 21, 3)]


@pytest.mark.parametrize(
    ("amounts", "words"),
    [
        ([1024] * 9, "1.00 KiB → 1.00 KiB, flat"),
        ([0, 1024, 2048, 0, 1024, 2048, 0, 1024, 2048, 1024], "up and down between 0 B and 2.00 KiB"),
        ([0, *[1024] * 9, 2048], "1.00 KiB → 2.00 KiB, not steadily"),
        ([0, 10, 20, 30], "10 B → 30 B, too few steps for a trend"),
        (RISING, "+8.00 KiB a step"),
    ],
)
def test_how_memory_moved_is_said_as_it_was(amounts: list[int], words: str) -> None:
    (phase,) = phases(on_cpu(loop(amounts)))
    moved = next(one for one in phase.figures if one.figure == "allocated")
    assert movement_text(moved).endswith(words)


def test_steps_in_words() -> None:
    assert said_steps({"train": 6, "eval": 0}) == "6 steps"
    assert said_steps({"train": 1}) == "1 step"
    assert said_steps({"train": 20, "eval": 12}) == "20 training and 12 evaluation steps"


@pytest.mark.parametrize(
    ("one", "holder", "why", "words"),
    [
        (grown("bounded", reason="kept by deque `d`"), None, "bounded", "kept by deque"),
        (grown("occasional"), keeper(), "occasional", "kept by list `kept`: why"),
        (grown("gc-garbage"), None, "gc-garbage", "born at model.py:8 why"),
        (grown("leak"), keeper("optimizer"), "optimizer", "an optimizer's own state"),
        (grown("leak", place="host"), keeper(place="host"), "host", "none of it is on the GPU"),
    ],
)
def test_each_harmless_growth_has_a_line(one: Drift, holder: Holder | None, why: str, words: str) -> None:
    found = verified(on_cpu(loop(RISING), drifts=(one,), holders=(holder,) if holder else ()))
    assert [h.why for h in found.harmless] == [why]
    named = why not in ("occasional", "host")  # `allocated` rose all the same, by what nobody can say
    assert (found.exit_code, bool(found.unexplained)) == (int(not named), not named)
    said = text_of(found)
    label = "not settled" if why == "occasional" else "harmless"
    assert f"{label}: 128.00 KiB (8.00 KiB a step) {found.harmless[0].text.partition(') ')[2]}" in said
    assert words in said
    assert as_json(found)["harmless"][0]["why"] == why


def test_growth_that_is_not_settled_has_a_status_of_its_own() -> None:
    one = on_cpu(loop(RISING), drifts=(grown("unsettled"),), holders=(keeper(),))
    found = verified(one)
    assert (found.exit_code, found.unsettled) == (3, 8192)
    assert "not settled: 128.00 KiB (8.00 KiB a step)" in text_of(found)
    assert "not settled: 8.00 KiB a step that grew over all that was watched" in text_of(found)
    assert replace(found, max_drift=8192).exit_code == 0
    state = replace(one, holders=(keeper("optimizer"),))
    assert verified(state).exit_code == 0


def test_what_a_verdict_or_a_leak_speaks_of_is_not_harmless_as_well() -> None:
    leaking = on_cpu(loop(RISING), drifts=(grown("leak"),), holders=(keeper(),))
    assert verified(leaking).harmless == ()
    seen_twice = replace(leaking, drifts=(grown("leak", "eval"), grown("occasional")))
    assert verified(seen_twice).harmless == ()
    occasional = on_cpu(loop(RISING), drifts=(grown("occasional"),), holders=(keeper(),))
    assert verified(occasional, findings=(finding(subject="kept"),)).harmless == ()
    assert len(verified(occasional).harmless) == 1


def test_growth_that_nothing_explains_is_said_as_such() -> None:
    found = verified(on_cpu(loop([10_000 + 2048 * n for n in range(24)])))
    assert found.unexplained == ()  # 46 KiB in all
    found = verified(on_cpu(loop(RISING)))
    assert [(one.kind, one.device) for one in found.unexplained] == [("train", 8192.0)]
    assert "unexplained: allocated grew by 8.00 KiB a training step more than what is named" in text_of(found)
    assert (found.drift, found.exit_code) == (8192.0, 1)
    seen = on_cpu(loop(RISING), lines=(ran(sampled=24),))
    (verdict,) = verified(seen, findings=(finding(subject="kept"),)).verdicts
    assert verdict.status == "inconclusive"
    assert "8.00 KiB a step grew that nothing explains" in verdict.text
    named = verified(on_cpu(loop(RISING), drifts=(grown("leak"),)))
    assert (named.unexplained, named.drift, named.exit_code) == ((), 8192.0, 1)
    limited = verified(on_cpu(loop(RISING), drifts=(grown("bounded"),)))
    assert (limited.unexplained, limited.drift, limited.exit_code) == ((), 0.0, 0)
    now_and_then = verified(on_cpu(loop(RISING), drifts=(grown("occasional"),)))
    assert (now_and_then.drift, now_and_then.exit_code) == (8192.0, 1)


def test_what_an_evaluation_keeps_explains_the_training_around_it() -> None:
    """Each epoch: eight steps of training, eight of an evaluation that keeps 32 KiB a step."""
    samples, level = [], 0
    for epoch in range(4):
        samples += loop([level] * 8, begin=100.0 * epoch, warmup=3 if epoch == 0 else 0)
        samples += loop([level + KEPT * n for n in range(1, 9)], "eval", begin=100.0 * epoch + 50)
        level += 8 * KEPT
    keeping = replace(grown("leak", "eval"), bytes_per_step=KEPT)
    assert [one.kind for one in verified(on_cpu(samples)).unexplained] == ["train"]
    assert verified(on_cpu(samples, drifts=(keeping,))).unexplained == ()


def test_the_report_at_two_widths_and_without_a_gpu() -> None:
    leaking = on_cpu(loop(RISING), drifts=(grown("bounded", reason="kept by " + "x" * 90),))
    assert "Drift of what would be on the GPU: 0 B a step." in text_of(verified(leaking))
    on_gpu = replace(leaking, environment=replace(leaking.environment, device="cuda"))
    assert "Drift on the GPU: 0 B a step." in text_of(verified(on_gpu))
    for columns in (80, 200):
        said = text_of(verified(leaking), columns)
        assert max(map(len, said.splitlines())) <= columns
        assert "    allocated  17.77 KiB → " in said
    failed = replace(leaking, end=End("raised", "the script raised ValueError: x after 9 steps"))
    assert "Not verified: the script raised ValueError: x after 9 steps. Drift" in text_of(verified(failed))


def message(kind: StepKind, step: int, is_sampled: bool = True) -> Progress:
    return Progress(0, Sample(step, kind, is_sampled, 1.0 * step, 0.1, allocated=1024), 21)


@pytest.mark.parametrize(
    ("capture", "said"), [(True, "40%gpulint: running"), (False, "40%\ngpulint: running")]
)
def test_nothing_is_written_into_a_progress_bars_line(capture: bool, said: str) -> None:
    """Where the script's own output goes by, it may stand in the middle of a line."""
    out = io.StringIO("40%")
    out.seek(0, io.SEEK_END)
    with progress.following(Run("train.py", capture=capture), out):
        pass
    assert said in out.getvalue()


def test_progress_counts_each_kind_by_itself_and_never_beyond_what_is_wanted() -> None:
    alone, beside = progress.Tally(20), progress.Tally(20)
    assert alone.text(message("eval", 1, False)) == "evaluation step 1, warm-up"
    assert alone.text(message("eval", 2)) == "evaluation step 2, 1 of 20 sampled"
    assert beside.text(message("train", 4)) == "training step 4, 1 of 20 sampled"
    said = [beside.text(message("eval", step)) for step in range(2, 40)]
    assert said[-1] == "evaluation step 39, 38 sampled"
    many = [alone.text(message("eval", step)) for step in range(3, 40)]
    assert many[-1] == "evaluation step 39, 38 sampled"


def test_a_pipe_hears_that_the_run_is_alive_before_its_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.01)
    out = io.StringIO()
    with progress.following(Run("train.py", capture=True), out) as show:
        while "no step yet" not in out.getvalue():
            time.sleep(0.01)
        show(message("train", 1, False))
        while "training step" not in out.getvalue():
            time.sleep(0.01)
    lines = out.getvalue().splitlines()
    assert lines[0] == "gpulint: running train.py, 20 steps after warm-up"
    assert "no step yet" in lines[1]
    assert any("training step 1, warm-up" in line for line in lines)


def test_steps_that_could_not_be_judged_are_no_all_clear() -> None:
    flat = on_cpu(loop([10_000] * 24), unjudged=("steps could not be judged: RuntimeError: a view",))
    found = verified(flat)
    assert (found.failed, found.exit_code) == (True, 2)
    assert "Not verified: steps could not be judged: RuntimeError: a view" in text_of(found)
    assert verified(replace(flat, drifts=(grown("leak"),))).exit_code == 1
