"""The fragmentation experiment: in the model, and on the GPU where there is one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import warm

from gpulint.allocator import MIB
from gpulint.operator import experiment
from gpulint.operator.experiment import SETTINGS, holes, lengths, standard


def gpu() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


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


class TestHoles:
    @pytest.mark.parametrize("setting", SETTINGS)
    def test_large_holes_are_filled_under_every_setting(self, setting) -> None:
        """Each tensor is a segment of its own: the allocator gives them back and asks for one."""
        outcome = experiment.in_model(holes(), setting)
        assert outcome.succeeded
        assert outcome.retries <= 1  # with max_split_size_mb oversize blocks go back before that

    def test_expandable_segments_lose_the_edges_of_holes(self) -> None:
        """Only whole pages of 20 MiB can be taken back: of a hole of 64 MiB, two."""
        assert experiment.in_model(holes(64 * MIB, 96), "").succeeded
        assert not experiment.in_model(holes(64 * MIB, 96), "expandable_segments:True").succeeded
        assert experiment.in_model(holes(80 * MIB, 96), "expandable_segments:True").succeeded

    @pytest.mark.parametrize("setting", SETTINGS)
    def test_small_holes_are_lost_under_every_setting(self, setting) -> None:
        """Five tensors share a segment: as long as one is there, the segment stays."""
        outcome = experiment.in_model(holes(4 * MIB, 768), setting)
        assert not outcome.succeeded
        assert outcome.reserved - outcome.allocated > 800 * MIB

    def test_what_is_asked_for(self) -> None:
        scenario = holes(10 * MIB, 9, 3, 0.5)
        assert [e.action for e in scenario.events].count("free") == 3
        assert scenario.events[-1].size == 15 * MIB

    @pytest.mark.parametrize(
        "arguments", [(0, 48, 3, 0.85), (MIB, 2, 3, 0.85), (MIB, 9, 3, 0), (MIB, 9, 1, 0.5)]
    )
    def test_senseless_arguments(self, arguments) -> None:
        with pytest.raises(ValueError, match="holes need"):
            holes(*arguments)


class TestLengths:
    def test_nothing_is_left_and_every_free_has_its_allocation(self) -> None:
        live: set[int] = set()
        for event in lengths(steps=5).events:
            if event.action == "alloc":
                live.add(event.name)
            else:
                live.remove(event.name)
        assert not live

    def test_settings_differ_as_measured(self) -> None:
        """On a GPU: default 4.3 times what was in use, expandable 1.03, max_split_size_mb:128 20 times."""
        ratio = {}
        for setting in SETTINGS:
            outcome = experiment.in_model(lengths(), setting)
            ratio[setting] = outcome.peak_reserved / outcome.peak_allocated
        assert ratio["expandable_segments:True"] < 1.05
        assert 2 < ratio[""] < 5
        assert ratio["max_split_size_mb:128"] > 10
        assert 1.05 < ratio["expandable_segments:True,max_split_size_mb:128"] < 1.5
        assert ratio["expandable_segments:True"] < ratio["roundup_power2_divisions:8"] < ratio[""]


class TestCommand:
    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "gpulint", "experiment", "fragmentation", *arguments]
        return warm.run_linter(command, capture_output=True, text=True, timeout=300)

    def test_in_the_model(self) -> None:
        done = self.run("--device", "model", "--setting", "default", "--setting", "expandable_segments:True")
        assert done.returncode == 0, done.stderr
        assert "in the model of the allocator" in done.stdout
        assert done.stdout.partition("against the default")[0].count("expandable_segments:True") == 4
        assert "these programs speak for expandable_segments:True" in done.stdout

    def test_json(self) -> None:
        done = self.run("--device", "model", "--setting", "default", "--json")
        assert [o["succeeded"] for o in json.loads(done.stdout)] == [True, True, False, True]

    @pytest.mark.parametrize("arguments", [("--size", "big"), ("--setting", "nonsense"), ("--ask", "0")])
    def test_wrong_use(self, arguments) -> None:
        assert self.run("--device", "model", *arguments).returncode == 2

    @pytest.mark.skipif(gpu(), reason="needs a machine without CUDA")
    def test_a_gpu_that_is_not_there(self) -> None:
        done = self.run("--device", "cuda", "--setting", "default")
        assert done.returncode == 2
        assert done.stdout.count("\n") > 5

    @pytest.mark.gpu
    @pytest.mark.skipif(not gpu(), reason="needs a CUDA device")
    def test_model_and_gpu_agree(self) -> None:
        for scenario in standard():
            for setting in ("", "expandable_segments:True", "max_split_size_mb:2048"):
                model, real = experiment.in_model(scenario, setting), experiment.on_gpu(scenario, setting)
                assert not real.error, real.error
                assert model.succeeded == real.succeeded
                assert model.peak_allocated == pytest.approx(real.peak_allocated, rel=0.01)
                assert model.peak_reserved == pytest.approx(real.peak_reserved, rel=0.03)


class TestConclusion:
    def of(self, setting: str, fits: bool, reserved: int, scenario: str = "a") -> experiment.Outcome:
        return experiment.Outcome(scenario, setting, "model", fits, 1 * MIB, reserved * MIB)

    def test_it_names_the_setting_that_saves_and_what_it_loses(self) -> None:
        outcomes = [
            self.of("", True, 100), self.of("x:1", True, 40), self.of("y:1", True, 400),
            self.of("", True, 50, "b"), self.of("x:1", False, 50, "b"), self.of("y:1", True, 50, "b"),
        ]  # fmt: skip
        text = "\n".join(experiment.conclusion(outcomes))
        assert "x:1  reserves 40.00 MiB instead of 100.00 MiB in a; OOM in b" in text
        assert "these programs speak for x:1, which reserves 60.00 MiB less" in text
        assert "it runs out of memory, where the default does not, in b" in text

    def test_where_nothing_differs_it_speaks_for_nothing(self) -> None:
        outcomes = [self.of("", True, 100), self.of("x:1", True, 101)]
        assert experiment.conclusion(outcomes)[-1].startswith("these programs speak for no setting")
        assert "no difference" in "\n".join(experiment.conclusion(outcomes))
        assert experiment.conclusion(outcomes[:1]) == []
