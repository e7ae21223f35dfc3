"""One engine answers for the files of a project that are linted after each other: the same as one for each of them would."""

from itertools import permutations
from pathlib import Path

import pytest
from gpulint.rules import all_rules

from gpulint.analysis.evaluate import evaluator
from gpulint.analysis.evaluate.fixpoint import Fixpoint
from gpulint.analysis.project.disk import Project
from gpulint.findings import Finding
from gpulint.lint.linter import lint_text
from gpulint.rule import RuleSet
from gpulint.source.files import every_file
from gpulint.source.program import top_of

NETS = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 64, 3), nn.Conv2d(64, 64, 3))

    def forward(self, x):
        return self.layers(x)


def load(path):
    state = torch.load(path)
    net = Net()
    net.load_state_dict(state["net"])
    return net
"""
EVALUATION = """\
import torch
from nets import load


def evaluate(net, loader):
    net.eval()
    right = 0
    for x, y in loader:
        right += (net(x).argmax(1) == y).sum().item()
    return right


def quick(net, loader):
    net.eval()
    return sum((net(x).argmax(1) == y).sum().item() for x, y in loader)
"""
TRAIN = """\
import torch
from evaluation import evaluate, quick
from nets import Net


def main(loader, held_out):
    net = Net().cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for epoch in range(10):
        for x, y in loader:
            loss = (net(x) - y).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            torch.cuda.empty_cache()
        with torch.no_grad():
            print(quick(net, held_out))
        print(evaluate(net, held_out))


if __name__ == "__main__":
    main([], [])
"""
FILES = {"nets.py": NETS, "evaluation.py": EVALUATION, "train.py": TRAIN}
RULES = RuleSet(all_rules())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def linted(path: Path, project: Project, text: str = "") -> list[Finding]:
    return lint_text(text or path.read_text(), str(path), RULES, project)


def project_of(folder: Path) -> Project:
    return Project(top=top_of([str(folder / name) for name in FILES]))


@pytest.mark.parametrize("order", tuple(permutations(FILES)), ids=" ".join)
def test_the_order_of_files_says_nothing(order: tuple[str, ...], folder: Path) -> None:
    alone = {name: linted(folder / name, project_of(folder)) for name in FILES}
    assert {one.code for found in alone.values() for one in found} == {"GPU201", "GPU501"}
    assert [one.line for one in alone["evaluation.py"]] == [9]  # its callers, in another file, decide
    shared = project_of(folder)
    assert {name: linted(folder / name, shared) for name in order} == alone


def test_what_one_file_has_asked_is_not_worked_out_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 0
    inner = Fixpoint._worked_out

    def counted(self: Fixpoint, *args: object) -> object:
        nonlocal count
        count += 1
        return inner(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Fixpoint, "_worked_out", counted)
    shared = project_of(folder)
    linted(folder / "train.py", shared)
    first, count = count, 0
    linted(folder / "train.py", shared)
    assert first > 100
    assert not count


def test_a_file_rests_on_what_others_have_read_for_it(folder: Path) -> None:
    """That nothing was read anew does not make a finding independent."""
    shared = project_of(folder)
    linted(folder / "train.py", shared)
    whole = [(path, digest) for path, digest in shared.dependencies if path == every_file(str(folder))]
    assert whole
    linted(folder / "train.py", shared)
    assert [one for one in shared.dependencies if one in whole] == whole


def test_a_text_that_is_not_the_files_own_leaves_no_trace(folder: Path) -> None:
    shared = project_of(folder)
    before = linted(folder / "evaluation.py", shared)
    assert linted(
        folder / "train.py", shared, TRAIN.replace("print(evaluate", "with torch.no_grad(): (evaluate")
    )
    assert linted(folder / "evaluation.py", shared) == before


def test_a_file_that_was_written_is_read_anew(folder: Path) -> None:
    shared = project_of(folder)
    assert linted(folder / "evaluation.py", shared)
    linted(folder / "train.py", shared)
    (folder / "train.py").write_text(
        TRAIN.replace("        print(evaluate", "        with torch.no_grad(): print(evaluate")
    )
    shared.forget_files()
    assert not linted(folder / "evaluation.py", shared)


def test_what_was_given_up_for_want_of_budget_is_left_to_nobody(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = project_of(folder)
    with monkeypatch.context() as scarce:
        scarce.setattr(evaluator, "MOST_EVALUATED", 40)
        linted(folder / "train.py", shared)
    assert shared.engine is None
    assert linted(folder / "evaluation.py", shared) == linted(folder / "evaluation.py", project_of(folder))


def test_an_error_in_a_rule_is_left_to_nobody(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was being worked out when it was raised is neither known nor unknown."""
    shared = project_of(folder)
    linted(folder / "nets.py", shared)
    with monkeypatch.context() as broken:
        broken.setattr(evaluator.Evaluator, "returned", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            linted(folder / "train.py", shared)
    assert shared.engine is None
    assert linted(folder / "evaluation.py", shared)
