"""`gpulint explain`: what was considered at a line, told or not, and each question's answer."""

import json
from pathlib import Path

import pytest
from gpulint.rules import all_rules
from support import book as notebook
from support import code_cell, gpulint

from gpulint.answers import (
    Answer,
    Question,
    Verdict,
    confidence_of,
    left_open,
    minor,
    proven,
    refuted,
    until_refuted,
)
from gpulint.findings import Confidence
from gpulint.lint.explaining import ELSEWHERE, OUTCOMES, SILENCED, SILENT, TOLD, Explained, explain_text
from gpulint.rule import RuleSet

RULES = RuleSet(all_rules(), {rule.code: {o.name: o.default for o in rule.options} for rule in all_rules()})

EVALUATION = """\
import torch
from torch import nn

model = nn.Linear(8, 2).to("cuda")
criterion = nn.CrossEntropyLoss()


def evaluate(loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += criterion(model(inputs), targets)
    return total
"""


def explained(text: str, row: int | None = None, filename: str = "train.py") -> list[Explained]:
    return [one for one in explain_text(text, filename, RULES) if row is None or one.is_at(row)]


def of(code: str, text: str, row: int | None = None) -> Explained:
    (found,) = {(one.row, one.column): one for one in explained(text, row) if one.code == code}.values()
    return found


def verdicts(one: Explained) -> list[tuple[Question, Verdict]]:
    return [(because.answer.question, because.answer.verdict) for because in one.answers]


def test_an_attribute_that_only_its_uses_show_to_be_a_network_is_nothing_that_was_made() -> None:
    text = """
import torch

class Trainer:
    def __init__(self):
        self.network = None

    def save(self, path):
        state = self.network.state_dict()
        self.best = state
        torch.save(state, path)

    def load(self, path):
        self.network.load_state_dict(torch.load(path))
        self.network.eval()
"""
    assert [one.code for one in explained(text)]


# -- the arithmetic ------------------------------------------------------------------------------------------


YES, NO, MAYBE = (
    make(Question.READS, clause)
    for make, clause in ((proven, "shown"), (refuted, "not so"), (left_open, "not seen"))
)
COSTS = minor(Question.SIZE, "how large, the code does not say")


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ((), Confidence.HIGH),
        ((YES, YES), Confidence.HIGH),
        ((YES, COSTS), Confidence.HIGH),
        ((YES, MAYBE), Confidence.LOW),
        ((COSTS, MAYBE), Confidence.LOW),
        ((YES, NO), None),
        ((MAYBE, NO), None),
        ((COSTS, NO), None),
    ],
)
def test_a_claim_is_arithmetic_over_its_answers(
    answers: tuple[Answer, ...], expected: Confidence | None
) -> None:
    assert confidence_of(answers) is expected


def test_what_comes_after_a_refutation_is_not_asked() -> None:
    def answers() -> object:
        yield YES
        yield NO
        raise AssertionError("asked on")

    assert until_refuted(answers()) == (YES, NO)  # type: ignore[arg-type]


# -- files ---------------------------------------------------------------------------------------------------


def test_a_claim_that_is_not_told_shows_what_refutes_it_and_the_line_that_says_so() -> None:
    guarded = EVALUATION.replace(
        "    for inputs, targets in loader:\n        total += criterion(model(inputs), targets)\n",
        "    with torch.no_grad():\n        for inputs, targets in loader:\n"
        "            total += criterion(model(inputs), targets)\n",
    )
    one = of("GPU201", guarded)
    assert one.outcome == SILENT
    (because,) = one.answers
    assert (verdicts(one), because.row) == ([(Question.GRAD, Verdict.REFUTED)], 11)


def test_what_a_comment_silences_is_said_to_be_silenced() -> None:
    text = EVALUATION.replace("model(inputs), targets)\n", "model(inputs), targets)  # gpulint: ignore\n")
    assert {one.outcome for one in explained(text, 12) if one.code in ("GPU101", "GPU201")} == {SILENCED}


def test_one_cause_is_told_once() -> None:
    text = EVALUATION.replace(
        "    return total\n", "        total += criterion(model(inputs * 2), targets)\n    return total\n"
    )
    outcomes = [one.outcome for one in explained(text) if one.code == "GPU201" and one.subject == "model"]
    assert outcomes == [TOLD, ELSEWHERE]


def test_an_answer_may_name_a_line_of_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "saving.py").write_text(
        "import torch\n\n\ndef load_checkpoint(path):\n    return torch.load(path)\n"
    )
    (tmp_path / "train.py").write_text(
        "import torch\nfrom saving import load_checkpoint\nfrom torchvision.models import vgg16\n\n\n"
        "def resume(path, loader):\n    net = vgg16().cuda()\n    state = load_checkpoint(path)\n"
        "    net.load_state_dict(state['net'])\n    for x in loader:\n        net(x.cuda()).sum().backward()\n"
    )
    monkeypatch.chdir(tmp_path)
    run = gpulint("explain", "--rule", "GPU403", "saving.py:5", cwd=tmp_path)
    assert "`state` keeps it while steps run (train.py:11)" in run.stdout.decode()
    written = json.loads(gpulint("explain", "--output-format", "json", "saving.py:5", cwd=tmp_path).stdout)
    places = [(answer["filename"], answer["row"]) for one in written for answer in one["answers"]]
    assert ("train.py", 11) in places


def test_every_told_finding_is_explained_by_its_answers() -> None:
    """What `check` reports and what a rule claims are one."""
    paths = sorted((Path(__file__).parent / "cases" / "outlives").glob("GPU101_bug*.py"))
    found = [one for path in paths for one in explained(path.read_text(encoding="utf-8"), filename="a.py")]
    told = {outcome: level for level, outcome in OUTCOMES.items()}
    assert {told.get(one.outcome) for one in found} == {*OUTCOMES, None}
    for one in found:
        level = confidence_of(because.answer for because in one.answers)
        if one.outcome in told:
            assert level is told[one.outcome], one


# -- notebooks -----------------------------------------------------------------------------------------------


def book(*sources: str) -> str:
    """A notebook with a title and code cells; each line has one of its JSON."""
    title = {"cell_type": "markdown", "metadata": {}, "source": ["# Title"]}
    return json.dumps(notebook(title, *(code_cell(one.splitlines(True)) for one in sources)), indent=1)


HEAD, FUNCTION = EVALUATION.split("\n\n\n")
BOOK = book(
    HEAD,
    "%matplotlib inline\n" + FUNCTION,
    "torch.set_grad_enabled(False)\nmodel.eval()\nhits = model(x)[0].item()\n",
)


def test_a_notebook_is_explained_in_its_cells() -> None:
    inner, last = (one for one in explained(BOOK, filename="book.ipynb") if one.code == "GPU201")
    assert (inner.cell, inner.row, inner.end_row, inner.outcome) == (3, 6, 6, SILENT)
    assert (inner.answers[0].answer.clause, inner.answers[0].cell) == ("grad is off", 4)
    assert (last.cell, last.row) == (4, 3)
    (because,) = (one for one in last.answers if one.answer.question is Question.GRAD)
    assert (because.cell, because.row) == (4, 1)


@pytest.mark.parametrize(
    "place",
    [
        "",
        ":cell 3",
        ":cell 3:6",
        ":3:6",
        ":cell 3:6:28",
        f":{BOOK[: BOOK.index('total +=')].count(chr(10)) + 1}",
    ],
)
def test_the_places_of_a_notebook(tmp_path: Path, place: str) -> None:
    """As findings give them, as other formats do, and by hand."""
    (tmp_path / "book.ipynb").write_text(BOOK)
    shown = gpulint("explain", f"book.ipynb{place}", "--rule", "GPU201", cwd=tmp_path, status=0)
    told = shown.stdout.decode()
    assert "book.ipynb:cell 3:6:28 GPU201 eval-with-grad: `model` not told" in told
    assert ("book.ipynb:cell 4" in told) == (not place)
    assert gpulint("explain", "book.ipynb:cell 2:6", cwd=tmp_path).returncode == 1


# -- the command ---------------------------------------------------------------------------------------------


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(EVALUATION)
    shown = gpulint("explain", "train.py:12", cwd=tmp_path, status=0)
    text = shown.stdout.decode()
    assert "train.py:12:28 GPU201 eval-with-grad: `model` told" in text
    assert "  grad      yes   grad is on where `evaluate` begins" in text
    only = gpulint("explain", "train.py:12", "--rule", "held-graph", "--output-format", "json", cwd=tmp_path)
    (one,) = json.loads(only.stdout)
    assert (one["code"], one["outcome"], one["location"]["row"]) == ("GPU101", "told", 12)
    assert {answer["verdict"] for answer in one["answers"]} == {"proven"}
    assert gpulint("explain", "train.py:1", cwd=tmp_path).returncode == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing.py:3",), "there is no file nothing.py"),
        (("train.py:0",), "lines and cells count from 1"),
        (("train.py:cell 1:2",), "train.py has no cells"),
        (("train.py", "--rule", "GPU10"), 'there is no rule "GPU10"'),
        (("broken.py",), "broken.py cannot be checked: syntax error"),
        (("book.ipynb",), "book.ipynb cannot be checked: not a notebook: it has no cells"),
    ],
)
def test_wrong_use_is_one_clear_sentence(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "train.py").write_text(EVALUATION)
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "book.ipynb").write_text("{}")
    done = gpulint("explain", *arguments, cwd=tmp_path, status=2)
    assert message in done.stderr.decode()


def test_what_is_seen_of_the_value_that_a_claim_is_about() -> None:
    held = of("GPU101", EVALUATION.replace("model.eval()", "model.train()"), 12)
    assert [(one.topic, one.row) for one in held.seen[:2]] == [("value", 12), ("made", 12)]
    assert [(one.topic, one.row) for one in held.seen[2:]] == [("used", 12), ("used", 13)]
    assert held.seen[1].clause == "`model(inputs)`"
    assert held.seen[3].clause == "returned"
    assert held.to_json()["seen"][0]["filename"] == "train.py"
