"""Equal means equal to the noise of the script itself, on made-up runs."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from gpulint.runtime.record.besides import Drawn, Position, Recording, Weight
from gpulint.runtime.record.peaks import StretchPeak
from gpulint.runtime.record.result import End, Environment, RankResult, RunResult, Sample
from gpulint.trial.comparing import Baseline, relative
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
