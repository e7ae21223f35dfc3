"""Equal means equal to the noise of the script itself: on made-up runs, and on what is printed."""

import math
from dataclasses import replace

import pytest

from gpulint.runtime.record.besides import Drawn, Position, Recording, Weight
from gpulint.runtime.record.peaks import StretchPeak
from gpulint.runtime.record.result import End, Environment, RankResult, RunResult, Sample
from gpulint.trial.comparing import Baseline, difference, relative, unordered, unsteady
from gpulint.trial.plan import gains_between, pays

LOSSES = tuple(1.0 / (1 + step) for step in range(30))
WEIGHT = Weight("Net 0: layer.weight, at the end", (4, 4), 12345, 1.5, 2.5)
DONE = Recording(Position(30), LOSSES, LOSSES, 0, (WEIGHT,), (Drawn("torch", "aa"), Drawn("python", "bb")))


def run(
    recording: Recording = DONE, out: str = "loss 0.5\n", end: str = "finished", **rank: object
) -> RunResult:
    environment = Environment("3.11", "python", "linux", "2026-01-01")
    ended = End.from_json({"reason": end, "message": f"the script {end}", "code": 0})
    result = RankResult(0, 1, environment, ended, recording=recording, **rank)  # type: ignore[arg-type]
    return RunResult((), ended, 1.0, (result,), out, "")


def changed(**parts: object) -> Recording:
    return replace(DONE, **parts)  # type: ignore[arg-type]


def scaled(by: float, since: int = 0) -> tuple[float, ...]:
    return tuple(loss * (1 + by) if step >= since else loss for step, loss in enumerate(LOSSES))


EXACT = Baseline(run(), run())
NOISY = Baseline(run(), run(changed(losses=scaled(1e-6, 5), norms=scaled(1e-7, 5))))


@pytest.mark.parametrize(
    "other",
    [
        changed(losses=scaled(1e-15, 29)),
        changed(losses=LOSSES[:-1]),
        changed(losses=(*LOSSES, 0.1)),
        changed(losses=(math.nan, *LOSSES[1:])),
        changed(losses=(None, *LOSSES[1:])),
        changed(norms=scaled(1e-15, 29)),
        changed(position=Position(30, 1)),
        changed(weights=(replace(WEIGHT, checksum=1),)),
        changed(drawn=(Drawn("torch", "xx"), Drawn("python", "bb"))),
    ],
)
def test_what_two_unchanged_runs_compute_alike_must_be_alike(other: Recording) -> None:
    assert EXACT.difference(run(other))


@pytest.mark.parametrize("size", [1e-6, 5e-6])
def test_within_the_noise_nothing_is_changed(size: float) -> None:
    assert not NOISY.is_exact
    assert "1e-06" in NOISY.noise()
    assert NOISY.difference(run(changed(losses=scaled(size, 2), norms=scaled(size / 10, 2)))) == ""


def test_weights_that_differ_by_themselves_are_compared_by_size() -> None:
    loose = Baseline(run(), run(changed(weights=(replace(WEIGHT, checksum=2, norm=2.5 * (1 + 1e-6)),))))
    assert loose.difference(run(changed(weights=(replace(WEIGHT, checksum=3, norm=2.5 * (1 - 4e-6)),)))) == ""
    assert loose.difference(run(changed(weights=(replace(WEIGHT, checksum=3, norm=2.6),))))
    assert loose.difference(run(changed(weights=()))) == ""  # gone at the end


def test_a_script_that_differs_from_itself_altogether_hides_everything() -> None:
    assert Baseline(run(), run(changed(losses=scaled(0.3)))).is_blind
    assert not Baseline(run(), run(changed(losses=scaled(0.3, 20)))).is_blind
    assert not NOISY.is_blind


def test_how_far_two_values_are_apart() -> None:
    assert relative(1.0, 1.1) == pytest.approx(0.1 / 1.1)
    assert relative(math.nan, math.nan) == relative(math.inf, math.inf) == relative(None, None) == 0.0
    assert relative(math.nan, 1.0) == relative(None, 1.0) == math.inf


# -- gains -------------------------------------------------------------------------------------------------------


def steps(milliseconds: float, peak: int, number: int = 20) -> tuple[Sample, ...]:
    return tuple(
        Sample(
            n + 1, "train", True, n * 0.1, milliseconds / 1000 * (1 + 0.01 * (n % 3)), peak // 2, peak=peak
        )
        for n in range(number)
    )


def stepped(milliseconds: float, peak: int) -> RunResult:
    return run(samples=steps(milliseconds, peak), peaks=(StretchPeak("steps", peak),))


def test_a_peak_that_falls_pays_and_time_only_where_it_counts() -> None:
    unchanged = [stepped(10, 1 << 20), stepped(10.1, 1 << 20)]
    smaller = gains_between(unchanged, stepped(10, 1 << 19))
    assert [gain.name for gain in smaller if gain.is_better] == ["peak in training", "peak"]
    assert pays(smaller)
    faster = gains_between(unchanged, stepped(5, 1 << 20))
    assert [gain.name for gain in faster if gain.is_better] == ["step time in training"]
    assert pays(faster)
    assert not pays(faster, by_time=False)
    slower = gains_between(unchanged, stepped(20, 1 << 20))
    assert [gain.name for gain in slower if gain.is_worse] == ["step time in training"]
    hardly = gains_between(unchanged, stepped(9.9, (1 << 20) - 256))
    assert not [gain for gain in hardly if gain.counts]


# -- what a script prints, compared as far as it is about results --------------------------------------------


SAME = [
    ("loss 0.3417", "loss 0.3417"),
    ("loss tensor(2.3026, grad_fn=<AddBackward0>)", "loss tensor(2.3026)"),
    ("loss tensor(2.3026, device='cuda:0', requires_grad=True)", "loss 2.302585"),
    ("total 12.3456", "total 12.3457"),  # added up in double precision: the last place that is printed
    ("peak memory 512.3 MiB", "peak memory 200.1 MiB"),
    ("max_memory_allocated: 1200.50MB", "max_memory_allocated: 300.25MB"),
    ("epoch 1 loss 0.5 time 3.21 (3.40)", "epoch 1 loss 0.5 time 2.99 (3.01)"),
    ("12.3 it/s, 41.2s", "14.9 it/s, 33.0s"),
    ("done at 12:30:01", "done at 12:31:44"),
    ("<Net object at 0x7f00aa>", "<Net object at 0x7f11bb>"),
    ("nan", "nan"),
    ("", "\n\n"),
]
OTHER = [
    ("loss 0.3417", "loss 0.3517"),
    ("epoch 1 loss 0.5 time 3.2", "epoch 1 loss 0.6 time 3.2"),
    ("right 93 of 100", "right 94 of 100"),
    ("accuracy 93.1%", "accuracy 92.1%"),
    ("f1 tensor([0.5, 0.25])", "f1 tensor([0.5, 0.26])"),
    ("a\nb", "a"),
    ("a", "a\nb"),
    ("loss 1.0", "loss nan"),
    ("shape (3, 4)", "shape (3, 5)"),
    ("best epoch: 3", "best epoch: 2"),
]


@pytest.mark.parametrize(("before", "after"), SAME)
def test_these_say_the_same(before: str, after: str) -> None:
    assert difference(before, before, after) == ""


@pytest.mark.parametrize(("before", "after"), OTHER)
def test_these_do_not(before: str, after: str) -> None:
    assert difference(before, before, after)


def test_numbers_that_two_unchanged_runs_print_differently_count_in_no_line_of_the_same_words() -> None:
    first = "step 1: loss 0.50, pace 11\nstep 2: loss 0.40, pace 12"
    again = "step 1: loss 0.50, pace 11\nstep 2: loss 0.40, pace 14"
    assert unsteady(first, again) == 1
    assert difference(first, again, "step 1: loss 0.50, pace 15\nstep 2: loss 0.40, pace 13") == ""
    assert "0.45" in difference(first, again, "step 1: loss 0.45, pace 11\nstep 2: loss 0.40, pace 12")


def test_the_order_of_ranks_that_print_at_once_does_not_count() -> None:
    assert unordered("rank 0: 1.5\nrank 1: 2.5", "rank 1: 2.5\nrank 0: 1.5", "rank 1: 2.5\nrank 0: 1.5") == ""
    assert unordered("rank 0: 1.5\nrank 1: 2.5", "rank 1: 2.5\nrank 0: 1.5", "rank 1: 2.5\nrank 0: 1.6")
