"""The measuring of costs: it runs where there is no GPU, measures what is missing, and merges into earlier results."""

import json
import sys
from pathlib import Path

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
    done = warm.run_torch([*command, *arguments], capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    return done.stdout


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
