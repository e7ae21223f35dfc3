"""Findings with doubts: quiet unless asked for, the same way through every door."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from gpulint.rules import all_rules
from support import codes, findings, gpulint

import gpulint as api
from gpulint.answers import Question, left_open
from gpulint.config import Config, ConfigError
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
DOUBTFUL_ROW = 7
# With two doubts: nothing moves it to a GPU either.
DARK = DOUBTFUL.replace('batch.to("cuda")', "batch").replace(
    "model: nn.Module, batch", "batch, model=nn.Linear(3000, 3000)"
)
CERTAIN = DOUBTFUL.replace("batch):", "batches):").replace(
    'model(batch.to("cuda"))', '[model(batch.to("cuda")).argmax(1).tolist() for batch in batches]'
)
# In row 7 a GPU403 that is a note: how large the network is, the file does not say.
UNWEIGHED = """\
import torch
from setup import things


def resume(net, optimizer, path, loader):
    net.cuda()
    checkpoint = torch.load(path, map_location="cuda")
    net.load_state_dict(checkpoint["net"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    for batch in loader:
        optimizer.zero_grad()
        net(batch).sum().backward()
        optimizer.step()


resume(*things())
"""
WEIGHT = "how large the network is, the code does not say"
LOW = "low"
RESULT = "its result goes to code that is not seen, which may want its gradient"
GPU = "nothing moves the network to a GPU"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scores.py").write_text(DOUBTFUL, encoding="utf-8")
    return tmp_path


def test_only_what_is_asked_for(folder: Path) -> None:
    assert gpulint("--no-cache", ".", cwd=folder).returncode == 0
    told = gpulint("--no-cache", "--confidence", LOW, ".", cwd=folder)
    assert told.returncode == 0  # nothing shows how large the network is: a note
    assert f"= doubt:  {RESULT} (low confidence)" in told.stdout.decode()
    assert gpulint("--confidence", "lowest", ".", cwd=folder).returncode == 2


def test_several_doubts_are_all_told_at_the_lowest_level(folder: Path) -> None:
    (folder / "dark.py").write_text(DARK, encoding="utf-8")
    (folder / "resume.py").write_text(UNWEIGHED, encoding="utf-8")
    levels = {
        level: [name for name, _, _ in codes("--no-cache", "--confidence", level, cwd=folder)]
        for level in ("high", "low")
    }
    assert levels == {
        "high": ["resume.py"],
        "low": ["dark.py", "resume.py", "scores.py"],
    }
    told = gpulint("--no-cache", "--confidence", LOW, "dark.py", cwd=folder).stdout.decode()
    assert f"= doubt:  {RESULT}; {GPU} (low confidence)" in told
    (found,) = findings("--no-cache", "--confidence", LOW, "dark.py", cwd=folder)
    assert (found["confidence"], found["doubts"]) == ("low", [RESULT, GPU])
    assert found["fix"]["applicability"] == "unsafe"


def test_a_rule_passes_on_all_that_is_open() -> None:
    (found,) = api.check_source(DARK.replace("3000, 3000", "30, 30"), config={"confidence": "low"})
    size = "the network has at least 900 weights, 3.52 KiB in float32, and nothing but linear layers"
    assert (found.doubts, found.confidence) == ((RESULT, GPU, size), Confidence.LOW)


@pytest.mark.parametrize(("moved", "doubts"), [(".cuda()", 1), ("", 2)])
def test_that_a_tensor_is_not_seen_to_be_on_a_gpu_is_a_doubt(moved: str, doubts: int) -> None:
    text = f"""\
import torch

@torch.no_grad()
def scores(loader, device):
    model = torch.nn.Linear(8, 1).to(device).eval()
    for inputs, names in loader:
        predicted = model(inputs){moved}.squeeze(1)
        for index, name in enumerate(names):
            print(name, predicted[index].item())
"""
    (found,) = api.check_source(text, config={"confidence": "low", "select": ["GPU504"]})
    assert len(found.doubts) == doubts


@pytest.mark.parametrize(("least", "reached"), [("high", ["high"]), ("low", ["high", "low"])])
def test_levels_are_ordered(least: str, reached: list[str]) -> None:
    assert [level.value for level in Confidence if level.reaches(Confidence(least))] == reached
    given: tuple[tuple[str, ...], ...] = ((), ("holds?",), ("holds?", "large?"))
    assert [Confidence.with_doubts(doubts).value for doubts in given] == ["high", "low", "low"]


def test_what_holds_but_is_not_weighed_is_a_note() -> None:
    (found,) = api.check_source(UNWEIGHED)
    assert (found.code, found.doubts, found.severity) == ("GPU403", (), Severity.INFO)
    assert found.cost.endswith(f"; {WEIGHT}")
    assert found.fix is not None
    assert found.fix.applicability == "safe"


def test_one_doubt_whether_it_matters_is_enough_for_the_lowest_level() -> None:
    text = DARK.replace("model(batch)", "model(batch).argmax(1).tolist()")
    (found,) = api.check_source(text, config={"confidence": "low"})
    assert (found.doubts, found.confidence) == ((GPU,), Confidence.LOW)
    assert Finding.from_json(found.to_json()).confidence is Confidence.LOW


@pytest.mark.parametrize("form", ["github", "gitlab", "junit", "sarif"])
def test_formats_with_one_text_tell_the_doubt(folder: Path, form: str) -> None:
    done = gpulint("--no-cache", "--confidence", LOW, "--output-format", form, cwd=folder)
    assert f"Doubt: {RESULT} (low confidence)" in done.stdout.decode()


def test_configuration_and_command_line(folder: Path) -> None:
    settings = folder / "gpulint.toml"
    settings.write_text('confidence = "low"\n', encoding="utf-8")
    assert codes("--no-cache", cwd=folder) == [("scores.py", "GPU201", DOUBTFUL_ROW)]
    assert codes("--no-cache", "--confidence", "high", cwd=folder) == []
    assert b'confidence = "low"' in gpulint("config", cwd=folder).stdout
    settings.write_text('confidence = "lo"\n', encoding="utf-8")
    wrong = gpulint("--no-cache", cwd=folder)
    assert wrong.returncode == 2
    assert 'confidence: expected one of "high", "low", got "lo"; did you mean "low"?' in wrong.stderr.decode()


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


def test_sarif(folder: Path) -> None:
    done = gpulint("--no-cache", "--confidence", LOW, "--output-format", "sarif", cwd=folder)
    (result,) = json.loads(done.stdout)["runs"][0]["results"]
    assert result["properties"]["confidence"] == "low"
    assert result["properties"]["doubts"] == [RESULT]


def test_cache_keeps_them_apart(folder: Path) -> None:
    (folder / "resume.py").write_text(UNWEIGHED, encoding="utf-8")
    for confidence, number in 2 * (("low", 2), ("high", 1)):
        assert len(findings("--confidence", confidence, cwd=folder)) == number


def test_a_comment_that_silences_a_doubtful_finding_is_used(folder: Path) -> None:
    comment = "  # gpulint: ignore[GPU201] -- scores are differentiated elsewhere\n"
    (folder / "scores.py").write_text(DOUBTFUL.rstrip("\n") + comment, encoding="utf-8")
    assert codes("--no-cache", cwd=folder) == []
    assert codes("--no-cache", "--confidence", LOW, cwd=folder) == []
    (folder / "scores.py").write_text(DOUBTFUL.replace("eval()\n", "eval()" + comment), encoding="utf-8")
    assert codes("--no-cache", cwd=folder) == [("scores.py", "GPU001", 6)]


def test_api() -> None:
    assert api.check_source(DOUBTFUL) == []
    (found,) = api.check_source(DOUBTFUL, config={"confidence": "low"})
    assert (found.code, found.line, found.confidence) == ("GPU201", DOUBTFUL_ROW, Confidence.LOW)
    with pytest.raises(ConfigError, match="confidence"):
        api.check_source(DOUBTFUL, config={"confidence": 1})
    assert Config.from_mapping({"confidence": "low"}).confidence is Confidence.LOW


def test_safe_fixes_leave_them_alone() -> None:
    assert api.fix_source(DOUBTFUL, config={"confidence": "low"}).text == DOUBTFUL
    fixed = api.fix_source(DOUBTFUL, config={"confidence": "low"}, unsafe=True).text
    assert "@torch.no_grad()" in fixed
    assert api.fix_source(DOUBTFUL, unsafe=True).text == DOUBTFUL


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
            answers = (left_open(Question.TENSOR, "nobody knows"),)
            yield Claimed(call, "model", answers, lambda call=call: Report(call, "hm"))


def test_rules_of_a_project_may_doubt() -> None:
    assert lint_text(CERTAIN, "scores.py", RuleSet((Suspicious,))) == []
    (found,) = lint_text(CERTAIN, "scores.py", RuleSet((Suspicious,), confidence=Confidence.LOW))
    assert (found.doubts, found.confidence) == (("nobody knows",), Confidence.LOW)
    assert found.doubt == "nobody knows (low confidence)"
    assert "shown with `--confidence low`" in page(Suspicious).markdown()


def test_what_is_not_shown_is_counted(folder: Path) -> None:
    def last_line(*options: str) -> str:
        return gpulint(".", *options, cwd=folder).stdout.decode().splitlines()[-1]

    hint = "1 more with doubts: --confidence low."
    assert last_line() == f"No findings in 1 file. {hint}"
    assert last_line() == f"No findings in 1 file. {hint}"  # from the cache
    assert last_line("--no-cache", "--confidence", LOW).startswith("Found 1 finding (")
    assert hint not in last_line("--no-cache", "--confidence", LOW)
    (folder / "scores.py").write_text(CERTAIN, encoding="utf-8")
    assert hint not in last_line("--no-cache")


KEPT = """\
import torch
from torchvision.models import resnet50


def outputs(videos):
    model = resnet50().cuda().eval()
    kept = []
    for at in range(videos.shape[1]):
        out = model(videos[:, at].cuda())
        kept.append(out)
    print(torch.stack(kept, 1).argmax(-1).tolist())


outputs(torch.zeros(8, 16, 3, 224, 224))
"""


@pytest.mark.parametrize(
    ("selected", "told"),
    [
        (("GPU101", "GPU201"), [("GPU101", "note"), ("GPU201", "warning")]),
        (("GPU101",), [("GPU101", "warning")]),
    ],
)
def test_what_one_mend_serves_as_well_is_a_note(
    selected: tuple[str, ...], told: list[tuple[str, str]]
) -> None:
    found = lint_text(KEPT, "kept.py", RuleSet(tuple(one for one in all_rules() if one.code in selected)))
    assert sorted((one.code, one.severity.word) for one in found) == told
    causes = [other.position.row for one in found if one.code == "GPU101" for other in one.related]
    assert causes == [one.line for one in found if one.code == "GPU201"]
