"""The fragmentation experiment: in the model, and on the GPU where there is one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import warm
from needs import cards
from support import as_text

from gpulint.allocator import MIB
from gpulint.operator import experiment
from gpulint.operator.experiment import SETTINGS, holes, standard

RESULTS = sorted((Path(__file__).parents[2] / "benchmarks" / "results").glob("kit-nvidia-*.json"))


@pytest.mark.parametrize("results", RESULTS, ids=lambda path: path.stem)
def test_the_model_says_what_was_measured_on_a_gpu(results: Path) -> None:
    """Every scenario under every setting: outcome, peaks and retries, to the byte."""
    rows = json.loads(results.read_text())["fragmentation"]["rows"]
    scenarios = {scenario.name: scenario for scenario in standard()}
    compared = ("succeeded", "peak_allocated", "peak_reserved", "retries")
    for row in rows:
        setting = "" if row["setting"] == "default" else row["setting"]
        model = experiment.in_model(scenarios[row["scenario"]], setting)
        assert [getattr(model, name) for name in compared] == [row["gpu"][name] for name in compared], row
    assert len(rows) == len(scenarios) * len(SETTINGS)


def test_holes() -> None:
    for setting in SETTINGS:
        # Each tensor is a segment of its own: the allocator gives them back and asks for one.
        large = experiment.in_model(holes(), setting)
        assert large.succeeded
        assert large.retries <= 1  # with max_split_size_mb oversize blocks go back before that
        # Five tensors share a segment: as long as one is there, the segment stays.
        small = experiment.in_model(holes(4 * MIB, 768), setting)
        assert not small.succeeded
        assert small.reserved - small.allocated > 800 * MIB
    # Only whole pages of 20 MiB can be taken back: of a hole of 64 MiB, two.
    for setting, size, fits in (
        ("", 64, True),
        ("expandable_segments:True", 64, False),
        ("expandable_segments:True", 80, True),
    ):
        assert experiment.in_model(holes(size * MIB, 96), setting).succeeded is fits
    scenario = holes(10 * MIB, 9, 3, 0.5)
    assert [e.action for e in scenario.events].count("free") == 3
    assert scenario.events[-1].size == 15 * MIB
    for senseless in ((0, 48, 3, 0.85), (MIB, 2, 3, 0.85), (MIB, 9, 3, 0), (MIB, 9, 1, 0.5)):
        with pytest.raises(ValueError, match="holes need"):
            holes(*senseless)


def run(*arguments: str, status: int | None = None) -> subprocess.CompletedProcess[str]:
    return as_text("experiment", "fragmentation", *arguments, cwd=Path.cwd(), status=status)


def test_the_command_in_the_model() -> None:
    done = run("--device", "model", "--setting", "default", "--setting", "expandable_segments:True", status=0)
    assert "in the model of the allocator" in done.stdout
    assert done.stdout.partition("against the default")[0].count("expandable_segments:True") == 4
    assert "these programs speak for expandable_segments:True" in done.stdout
    done = run("--device", "model", "--setting", "default", "--json")
    assert [o["succeeded"] for o in json.loads(done.stdout)] == [True, True, False, True]
    for wrong in (("--size", "big"), ("--setting", "nonsense"), ("--ask", "0")):
        assert run("--device", "model", *wrong).returncode == 2


@pytest.mark.skipif(cards() > 0, reason="needs a machine without CUDA")
def test_a_gpu_that_is_not_there() -> None:
    # In a fork that has torch: a new process would import it only to hear that there is no card.
    command = [sys.executable, "-m", "gpulint", "experiment", "fragmentation", "--device", "cuda"]
    done = warm.run_torch([*command, "--setting", "default"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout.count("\n") > 5


def of(setting: str, fits: bool, reserved: int, scenario: str = "a") -> experiment.Outcome:
    return experiment.Outcome(scenario, setting, "model", fits, 1 * MIB, reserved * MIB)


def test_the_conclusion_names_the_setting_that_saves_and_what_it_loses() -> None:
    outcomes = [
        of("", True, 100), of("x:1", True, 40), of("y:1", True, 400),
        of("", True, 50, "b"), of("x:1", False, 50, "b"), of("y:1", True, 50, "b"),
    ]  # fmt: skip
    text = "\n".join(experiment.conclusion(outcomes))
    assert "x:1  reserves 40.00 MiB instead of 100.00 MiB in a; OOM in b" in text
    assert "these programs speak for x:1, which reserves 60.00 MiB less" in text
    assert "it runs out of memory, where the default does not, in b" in text
    alike = [of("", True, 100), of("x:1", True, 101)]
    assert experiment.conclusion(alike)[-1].startswith("these programs speak for no setting")
    assert "no difference" in "\n".join(experiment.conclusion(alike))
    assert experiment.conclusion(alike[:1]) == []
