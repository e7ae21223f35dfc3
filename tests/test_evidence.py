"""The measuring of costs: it runs where there is no GPU, measures what is missing, and merges into earlier results."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import warm
from gpulint.rules import all_rules

from gpulint.analysis.models.allocator import bad_options

pytest.importorskip("torch")
BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def evidence(*arguments: str) -> str:
    command = [sys.executable, str(BENCHMARKS / "evidence.py"), "--device", "cpu", "--quick", "--steps", "1"]
    done = warm.run_torch([*command, *arguments], capture_output=True, text=True, check=False, timeout=250)
    assert done.returncode == 0, done.stderr
    return done.stdout


def case(code: str, title: str, ms: float = 1.0) -> dict[str, Any]:
    return {"code": code, "title": title, "variants": {"bad": {"ms": ms}}}


def results(*cases: dict[str, Any], torch: str = "2.11", **more: Any) -> dict[str, Any]:
    environment = {"torch": torch, "device_name": "NVIDIA H200"}
    return {
        "hardware": {"date": "2026-01-01"},
        "environment": environment,
        "size": {},
        "cases": [*cases],
        **more,
    }


def test_every_rule_has_a_case() -> None:
    from evidence_cases import PROCESS_CASES, all_cases

    cases = [*all_cases(), *PROCESS_CASES]
    assert {case.code for case in cases} == {rule.code for rule in all_rules()}
    assert len({(case.code, case.title) for case in cases}) == len(cases)


def test_every_misspelt_setting_is_one_that_the_rule_reports() -> None:
    from evidence_cases.processes import MISSPELT

    assert len(set(MISSPELT)) == len(MISSPELT)
    assert [text for text in MISSPELT if not list(bad_options(text, None))] == []


def test_runs_without_a_gpu_and_measures_only_what_is_missing(tmp_path: Path) -> None:
    out = tmp_path / "evidence.json"
    evidence("GPU404", "--out", str(out))
    first = json.loads(out.read_text())
    clones = next(case for case in first["cases"] if case["title"] == "a dict of the weights")["variants"]
    assert (
        clones["clone"]["notes"]["allocated for the snapshot"] >= clones["clone"]["notes"]["parameters"] > 0
    )
    assert clones["cpu, clone"]["notes"]["allocated for the snapshot"] == 0
    assert "a dict of the weights" in out.with_suffix(".md").read_text()

    first["cases"] = [case for case in first["cases"] if case["title"] != "best weights kept"]
    first["cases"][0]["variants"]["clone"]["ms"] = -1.0
    out.write_text(json.dumps(first))
    printed = evidence("GPU404", "--missing", "--merge", str(out))
    assert "best weights kept" in printed
    assert "a dict of the weights" not in printed
    second = json.loads(out.read_text())
    assert {case["title"] for case in second["cases"]} == {"a dict of the weights", "best weights kept"}
    assert second["cases"][0]["variants"]["clone"]["ms"] == -1.0


def test_merging_replaces_a_case_and_keeps_how_the_others_were_measured() -> None:
    from evidence import merged

    earlier = results(case("GPU101", "a"), case("GPU201", "b"), runs=1, steps=10)
    whole = merged(earlier, results({**case("GPU101", "a", 2.0), "runs": 3}, case("GPU102", "c")))
    assert [case["code"] for case in whole["cases"]] == ["GPU101", "GPU102", "GPU201"]
    assert whole["cases"][0]["variants"]["bad"]["ms"] == 2.0
    assert whole["cases"][0]["runs"] == 3
    assert (whole["cases"][2]["runs"], whole["cases"][2]["steps"], whole["cases"][2]["date"]) == (
        1,
        10,
        "2026-01-01",
    )
    assert "runs" not in whole


def test_results_of_another_machine_are_not_merged() -> None:
    from evidence import merged

    with pytest.raises(ValueError, match=r"environment torch was '2.11' and is '2.12'"):
        merged(results(), results(torch="2.12"))


def test_the_table_tells_notes_in_their_own_unit() -> None:
    from evidence import note_text

    assert note_text("allocated after backward", 1536) == "allocated after backward 1.50 KiB"
    assert note_text("a training step, ms", 24.701) == "a training step 24.70 ms"
    assert note_text("tried, settings", 18) == "tried 18 settings"


@pytest.mark.parametrize(("every", "trains", "calls"), [(1, False, 10), (5, True, 2)])
def test_a_chain_calls_as_often_as_its_name_says(
    monkeypatch: pytest.MonkeyPatch, every: int, trains: bool, calls: int
) -> None:
    from evidence_cases import slow
    from evidence_cases.setup import QUICK, Setup

    made: list[str] = []
    monkeypatch.setattr(slow, "_call", lambda setup, what: made.append(what))
    setup = Setup(QUICK, "cpu", lambda: 0)
    slow.chain("gc.collect", every=every, steps=10, mlp=True, trains=trains)(setup)()
    assert made == ["gc.collect"] * calls
    assert len(setup.notes["one step, ms"]) == 1
    assert set(slow.EVERY) >= {every}
