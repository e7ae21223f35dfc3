"""What single calls and whole workloads take, forecast and as recorded on an H200 (`benchmarks/results/forecast-…`)."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support import run_command

from gpulint.forecasting.cards import card_for
from gpulint.forecasting.forecasting import forecast_once as forecast
from gpulint.forecasting.recorder import Program

pytest.importorskip("torch")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RECORDED = json.loads(
    (BENCHMARKS / "results" / "forecast-operators-nvidia-h200-2026-11-23.json").read_text()
)["calls"]
NAMES = (
    "MSELoss 1024x1024 f32", "BCEWithLogitsLoss 1024x1024 bf16", "HuberLoss 1024x1024 f32", "RMSNorm 4096x2048 amp",
    "index_select f32", "index of pairs f32", "mask assigned f32", "max columns 2048x2048 f32", "var columns 2048x2048 f32",
    "logsumexp columns 2048x2048 f32", "sum of mask f32", "count_nonzero f32", "sort whole numbers: ", "multinomial f32",
    "Embedding positions", "EmbeddingBag sparse", "EmbeddingBag sum sparse", "Unfold 8x64x32x32 f32", "sdpa learned bias bf16",
    "sdpa width 80 f32", "graph attention bf16", "step of SGD momentum fused", "GRUCell", "gradient penalty flat", "training actor",
    "training words", "rfft and back", "Conv2d (16, 256, 64, 56, 1, 1, 1) nchw f32",
)  # fmt: skip
NEAR = 1 << 20  # bytes


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    out = tmp_path_factory.mktemp("calls") / "forecast.json"
    script = BENCHMARKS / "forecast_operators.py"
    run_command(sys.executable, script, "forecast", out, "--only", *NAMES, status=0)
    return json.loads(out.read_text())["calls"]


@pytest.mark.slow
def test_calls_take_what_they_took_on_the_gpu(told: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from forecast_operators import peak_of

    assert len(told) >= len(NAMES) - 3
    off = []
    for name, call in told.items():
        assert "error" not in call, (name, call)
        for phase, events in RECORDED[name]["phases"].items():
            (high, stays), (high_told, stays_told) = peak_of(events), peak_of(call["phases"][phase])
            if abs(high - high_told) > max(NEAR, 0.1 * high) or abs(stays - stays_told) > NEAR:
                off.append((name, phase, high, high_told, stays, stays_told))
    assert not off


def test_the_recorder_numbers_what_a_phase_allocates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import forecast_operators

    trace = [
        ("alloc", 10, 100), ("segment_alloc", 10, 1 << 21), ("alloc", 20, 200), ("free_requested", 10, 100),
        ("free_completed", 10, 100), ("alloc", 10, 300), ("free_completed", 99, 7), ("free_completed", 10, 300),
    ]  # fmt: skip
    assert forecast_operators.relative(trace) == [100, 200, -1, 300, "7", -3]


# -- whole workloads, of those that need nothing but torch ---------------------------------------------------


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
