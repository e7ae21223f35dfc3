"""Findings with doubts: quiet unless asked for, the same way through every door."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from support import findings, gpulint

import gpulint as api
from gpulint.answers import Question, left_open
from gpulint.findings import Confidence, Finding, Severity
from gpulint.lint.baseline import compare
from gpulint.lint.documentation import page
from gpulint.lint.linter import lint_text
from gpulint.rule import Claimed, Report, Rule, RuleSet
from gpulint.source.sources import Sources

# In row 7 a GPU201 of low confidence: what its result is for, the file does not say.
DOUBTFUL = """\
import torch
from torch import nn


def scores(model: nn.Module, batch):
    model.eval()
    return model(batch.to("cuda"))
"""
CERTAIN = DOUBTFUL.replace("batch):", "batches):").replace(
    'model(batch.to("cuda"))', '[model(batch.to("cuda")).argmax(1).tolist() for batch in batches]'
)
LOW = "low"
RESULT = "its result goes to code that is not seen, which may want its gradient"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scores.py").write_text(DOUBTFUL, encoding="utf-8")
    return tmp_path


def test_only_what_is_asked_for(folder: Path) -> None:
    assert gpulint("--no-cache", ".", cwd=folder).returncode == 0
    told = gpulint("--no-cache", "--confidence", LOW, ".", cwd=folder, status=0)
    assert f"= doubt:  {RESULT} (low confidence)" in told.stdout.decode()
    assert gpulint("--confidence", "lowest", ".", cwd=folder).returncode == 2


@pytest.mark.parametrize("form", ["github", "gitlab", "junit", "sarif"])
def test_formats_with_one_text_tell_the_doubt(folder: Path, form: str) -> None:
    done = gpulint("--no-cache", "--confidence", LOW, "--output-format", form, cwd=folder)
    assert f"Doubt: {RESULT} (low confidence)" in done.stdout.decode()


def test_reports(folder: Path) -> None:
    (found,) = findings("--no-cache", "--confidence", LOW, cwd=folder)
    assert (found["confidence"], found["doubts"]) == ("low", [RESULT])
    assert found["fix"]["applicability"] == "unsafe"
    assert Finding.from_json(found).doubts == (RESULT,)
    older = {**found, "doubt": found.pop("doubts")[0], "confidence": "low"}
    del older["doubts"]
    assert Finding.from_json(older).confidence is Confidence.LOW
    (folder / "scores.py").write_text(CERTAIN, encoding="utf-8")
    (found,) = findings("--no-cache", "--confidence", LOW, cwd=folder)
    assert (found["confidence"], found["doubts"]) == ("high", [])
    assert found["fix"]["applicability"] == "safe"


def test_cache_keeps_them_apart(folder: Path) -> None:
    (folder / "certain.py").write_text(CERTAIN, encoding="utf-8")
    for confidence, number in 2 * (("low", 2), ("high", 1)):
        assert len(findings("--confidence", confidence, cwd=folder)) == number


def test_a_baseline_takes_them_as_any_other(folder: Path) -> None:
    written = gpulint("--no-cache", "--confidence", LOW, "--write-baseline", cwd=folder)
    assert b"1 finding accepted" in written.stderr
    again = gpulint("--no-cache", "--confidence", LOW, "--baseline", "gpulint-baseline.json", cwd=folder)
    assert again.returncode == 0
    low = api.check_paths(folder, {"confidence": "low"})
    assert compare(str(folder / "gpulint-baseline.json"), low, Sources()).known == low


class Suspicious(Rule):
    """## What it does
    Doubts."""

    code = "X001"
    name = "suspicious"
    severity = Severity.WARNING
    triggers = ((b"torch",),)
    doubts = True

    def claims(self, asked: Any, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for call in asked.file.functions[0].flow.calls["model"]:
            answers = tuple(
                left_open(Question.TENSOR, one) for one in ("nobody knows", "nor when", "nor when")
            )
            yield Claimed(call, "model", answers, lambda call=call: Report(call, "hm"))


def test_rules_of_a_project_may_doubt() -> None:
    assert lint_text(CERTAIN, "scores.py", RuleSet((Suspicious,))) == []
    (found,) = lint_text(CERTAIN, "scores.py", RuleSet((Suspicious,), confidence=Confidence.LOW))
    assert (found.doubts, found.confidence) == (("nobody knows", "nor when", "nor when"), Confidence.LOW)
    assert found.doubt == "nobody knows; nor when (low confidence)"
    assert "shown with `--confidence low`" in page(Suspicious).markdown()


def test_safe_fixes_leave_them_alone() -> None:
    assert api.fix_source(DOUBTFUL, config={"confidence": "low"}).text == DOUBTFUL
    fixed = api.fix_source(DOUBTFUL, config={"confidence": "low"}, unsafe=True).text
    assert "@torch.no_grad()" in fixed
    assert api.fix_source(DOUBTFUL, unsafe=True).text == DOUBTFUL
