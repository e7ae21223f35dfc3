"""Forecasts against what an H200 really took (`benchmarks/results/`), for the workloads that need nothing but torch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

from gpulint.forecasting.cards import card_for
from gpulint.forecasting.forecasting import forecast_once as forecast
from gpulint.forecasting.recorder import Program

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
TRUTH = json.loads((BENCHMARKS / "results" / "forecast-truth-open-nvidia-h200-2026-11-22.json").read_text())[
    "runs"
]


@pytest.mark.slow
@pytest.mark.usefixtures("warm_scripts")
@pytest.mark.parametrize(
    ("workload", "batch", "allocated", "reserved"),
    [("mlp", 256, 0.001, 0.005), ("mlp", 1024, 0.001, 0.005), ("lstm", 20, 0.001, 0.02), ("train_eval_save", 128, 0.02, 0.1)],
)  # fmt: skip
def test_the_forecast_is_what_the_gpu_took(
    workload: str, batch: int, allocated: float, reserved: float
) -> None:
    truth = TRUTH[f"{workload}-{batch}"]
    script = BENCHMARKS / "forecast_workloads" / f"{workload}.py"
    told = forecast(Program(str(script), ("--batch", str(batch))), card_for("h200"))
    assert told.allocated.value == pytest.approx(truth["peak_allocated"], rel=allocated)
    assert told.reserved.value == pytest.approx(truth["peak_reserved"], rel=reserved)
    process = truth["used_at_end"] - truth["reserved_at_end"] + truth["peak_reserved"]
    assert told.process.low <= process <= told.process.high
    assert told.fits == "yes"
