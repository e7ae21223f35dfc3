"""A safe fix changes no result: labelled programs do the same on the CPU before and after it.

Functions are run on made-up arguments; what does not run before the fix proves nothing and is left out.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from gpulint.rules import all_rules
from test_cases import all_cases

from gpulint.api import check_paths
from gpulint.edits import apply_edits
from gpulint.fixing import fix_text
from gpulint.linter import lint_text
from gpulint.rule import RuleSet

RULES = RuleSet(all_rules())
TRIAL = Path(__file__).parent / "trial.py"

pytestmark = pytest.mark.skipif(
    find_spec("torch") is None, reason="torch is not installed; programs import it"
)


def fixed(text: str, name: str, rules: RuleSet = RULES) -> str:
    """The text after all safe fixes."""
    return fix_text(text, lambda source: lint_text(source, name, rules), False).text


def outcomes(paths: list[Path], folder: Path) -> dict[str, Any]:
    """What came of each function, by name, for each program by file name. Raises CalledProcessError where it breaks off."""
    result = subprocess.run(
        [sys.executable, str(TRIAL), *map(str, paths)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    return {Path(path).name: found for path, found in json.loads(result.stdout.splitlines()[-1]).items()}


def changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The functions that ran before and now do something else."""
    return [
        f"{name}: {after.get(name, before['<module>'])}"
        for name, left in before.items()
        if "digest" in left and after.get(name) != left
    ]


@cache
def programs() -> dict[str, tuple[str, str]]:
    """The labelled programs of which a safe fix changes something, before and after."""
    found: dict[str, tuple[str, str]] = {}
    for case in all_cases():
        if case.path.name.startswith("bug_"):
            text = fixed(case.text, case.path.name)
            if text != case.text:
                found[f"{case.path.parent.name}_{case.path.name}"] = (case.text, text)
    return found


def test_programs_do_the_same_after_safe_fixes(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    for folder, which in ((before, 0), (after, 1)):
        folder.mkdir()
        for name, texts in programs().items():
            (folder / name).write_text(texts[which], encoding="utf-8")
    first = outcomes([before / name for name in programs()], before)
    second = outcomes([after / name for name in programs()], after)
    wrong = {name: changed(first[name], second[name]) for name in first}
    assert {name: found for name, found in wrong.items() if found} == {}
    ran = [
        name
        for name, left in first.items()
        if any("digest" in left[key] for key in left if key != "<module>")
    ]
    assert len(ran) >= 60, f"only {len(ran)} of {len(first)} programs ran: {first}"


GAN = """
import torch
from torch import nn

def train(netd, netg, loader, crit):
    opt_d = torch.optim.SGD(netd.parameters(), 0.1)
    opt_g = torch.optim.SGD(netg.parameters(), 0.1)
    for real in loader:
        noise = torch.randn(len(real), 8).cuda()
        {step}
        opt_d.zero_grad()
        loss.backward()
        opt_d.step()
        opt_g.zero_grad()
        loss = crit(netd(netg(noise)), torch.ones(len(real), 8).cuda())
        loss.backward()
        opt_g.step()
"""
STEPS = {
    "nested": "loss = crit(netd(netg(noise)), torch.zeros(8, 8))",
    "by_keyword": "loss = crit(netd(x=netg(noise)), torch.zeros(8, 8))",
    "both": "loss = crit(netd(real), torch.ones(8, 8)) + crit(netd(netg(noise)), torch.zeros(8, 8))",
    "on_one_line": "fake = netg(noise); loss = crit(netd(fake), torch.zeros(8, 8))",
    "on_two_lines": "fake = netg(noise)\n        loss = crit(netd(fake), torch.zeros(8, 8))",
    "over_lines": "loss = crit(netd(\n            netg(noise)\n        ), torch.zeros(8, 8))",
    "in_a_tuple": "judged, real_too = netd(netg(noise)), netd(real)\n        loss = crit(judged, real_too)",
    "named_in_between": "fake = netg(noise); out = netd(fake); loss = crit(out, torch.zeros(8, 8))",
}


def test_discriminators_learn_the_same_in_every_layout(tmp_path: Path) -> None:
    rules = RuleSet(tuple(rule for rule in all_rules() if rule.code == "GPU203"))
    paths: dict[str, list[Path]] = {"before": [], "after": []}
    for name, step in STEPS.items():
        text = GAN.format(step=step)
        done = fixed(text, "gan.py", rules)
        assert done != text, name
        for when, source in (("before", text), ("after", done)):
            (tmp_path / when).mkdir(exist_ok=True)
            paths[when].append(tmp_path / when / f"{name}.py")
            paths[when][-1].write_text(source)
    before, after = (outcomes(paths[when], tmp_path) for when in ("before", "after"))
    assert all("digest" in found["train"] for found in before.values()), before
    assert {name: changed(before[name], after[name]) for name in before} == {name: [] for name in before}


# Where grad is switched off

EVALUATION = """
import torch
{imports}

def measure(model: torch.nn.Module, loader):
    model.eval()
    total = 0
    for x in loader:
        y = model(x.cuda())
        {use}
    return total
"""


def evaluation(imports: str, use: str) -> str:
    return fixed(EVALUATION.format(imports=imports, use=use), "train.py")


def test_a_function_is_decorated_where_all_that_it_calls_is_known() -> None:
    text = evaluation("from math import sqrt", "total += sqrt(y.sum().item())")
    assert "@torch.no_grad()\ndef measure(" in text


@pytest.mark.parametrize(
    ("imports", "use"),
    [
        ("from aligning import register", "total += register(y.detach(), x)"),
        ("import aligning", "total += aligning.Registration().fit(y.detach(), x)"),
        ("import inspect", "total += y.argmax().item() + len(inspect.signature(measure).parameters)"),
        ("from somewhere import table", "total += y.argmax().item(); table[0] = measure"),
    ],
    ids=["unseen_function", "unseen_object", "signature_read", "registered"],
)
def test_no_decorator_where_more_than_the_forward_could_be_meant(imports: str, use: str) -> None:
    text = evaluation(imports, use)
    assert "@torch" not in text
    assert "with torch.no_grad():" in text
    if "aligning" in imports:
        assert "        with torch.no_grad():\n            y = model(x.cuda())\n        total +=" in text


def test_no_decorator_where_another_file_reads_the_signature(tmp_path: Path) -> None:
    (tmp_path / "measuring.py").write_text(EVALUATION.format(imports="", use="total += y.argmax().item()"))
    user = "from measuring import measure\nprint(measure.__code__.co_varnames)\n"
    for text, decorated in (
        ("", True),
        (user, False),
        (user.replace(".__code__.co_varnames", "(1, 2)"), True),
    ):
        (tmp_path / "using.py").write_text(text)
        (finding,) = check_paths(tmp_path, {"select": ["GPU201"]})
        assert finding.fix is not None
        assert finding.fix.applicability == "safe"
        assert ("decorate" in finding.fix.message) == decorated


def test_no_decorator_where_the_metaclass_reads_parameters(tmp_path: Path) -> None:
    meta = """
import inspect


class Meta(type):
    def __new__(cls, name, bases, space):
        for key, value in list(space.items()):
            if callable(value):
                space[key] = by_name(value, inspect.{reader}(value).args)
        return super().__new__(cls, name, bases, space)


class Base(metaclass=Meta):
    pass
"""
    method = EVALUATION.format(imports="from bases import Base", use="total += y.argmax().item()")
    head, _, body = method.partition("def measure(")
    indented = "".join(
        f"    {line}" if line.strip() else line for line in f"def measure({body}".splitlines(True)
    )
    text = f"{head}class Measuring(Base):\n{indented}".replace("def measure(", "def measure(self, ")
    (tmp_path / "measuring.py").write_text(text)
    for reader, decorated in (("getfullargspec", False), ("getsource", True)):
        (tmp_path / "bases.py").write_text(meta.replace("{reader}", reader))
        (finding,) = check_paths(tmp_path, {"select": ["GPU201"]})
        assert finding.fix is not None
        assert finding.fix.applicability == "safe"
        assert ("decorate" in finding.fix.message) == decorated


def test_a_generator_is_not_left_with_grad_off() -> None:
    text = evaluation("", "yield y.argmax().item()")
    assert "    with torch.no_grad():\n        for" not in text


def test_a_statement_that_has_the_students_graph_is_left_alone() -> None:
    text = (TRIAL.parent / "cases/GPU202/bug_teacher_beside_the_student.py").read_text()
    assert fixed(text, "train.py") == text


def test_what_a_backward_wants_stays_outside() -> None:
    text = """
import torch
import torch.nn.functional as F

def adapt(model: torch.nn.Module, x, y, optimizer):
    for a, b in zip(x, y):
        loss = F.mse_loss(model(a), b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    before = model(x.cuda()).argmax(1).cpu().numpy()
    loss = F.mse_loss(model(x.cuda()), y)
    after = model(y.cuda()).argmax(1).cpu().numpy()
    loss.backward()
    return before, after
"""
    done = fixed(text, "train.py")
    assert "\n    loss = F.mse_loss(model(x.cuda()), y)\n" in done


# What is held as a number

HELD = """
import math
import torch
import torch.nn.functional as F

def train(model, loader, opt):
    held, total = [], 0
    for x, y in loader:
        out = model(x)
        loss = F.mse_loss(out, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        held.append({value})
    {use}
"""


@pytest.mark.parametrize(
    ("value", "use", "fix"),
    [
        ("loss", "print(sum(held) / len(held))", "loss.item()"),
        ("loss", "mean = sum(held) / len(held); print(math.exp(mean), f'{max(held):.2f}')", "loss.item()"),
        ("out.norm(p=2)", "print(held)", "out.norm(p=2).item()"),
        ("loss", "print((sum(held) / len(held)).item())", "loss.detach()"),
        ("loss", "mean = sum(held) / len(held); print(mean.cpu())", "loss.detach()"),
        ("loss", "best = min(held); worst = best * 2; print(torch.exp(worst))", "loss.detach()"),
        ("loss", "print(held[-1].item())", "loss.detach()"),
        ("loss", "print([one.item() for one in held])", "loss.detach()"),
        ("loss", "print(max(held, key=lambda one: one.item()))", "loss.detach()"),
        ("loss", "report(held)", "loss.detach()"),
        ("loss", "return held", "loss.detach()"),
        ("loss.expand(4)", "print(held)", "loss.expand(4).detach()"),
        ("loss.unsqueeze(0).sum((0,))", "print(held)", "loss.unsqueeze(0).sum((0,)).detach()"),
    ],
)
def test_a_number_is_held_only_where_one_will_do(value: str, use: str, fix: str) -> None:
    done = fixed(HELD.format(value=value, use=use), "train.py")
    assert f"held.append({fix})" in done


def test_a_tensor_that_grows_by_joining_is_not_moved_in_part() -> None:
    text = (TRIAL.parent / "cases/GPU102/bug_cat_unless_first.py").read_text()
    found = [finding for finding in lint_text(text, "train.py", RULES) if finding.code == "GPU102"]
    assert found
    assert all(finding.fix is None for finding in found)


# Where a graph is cut


def fix_of(text: str, code: str) -> list[tuple[str, str]]:
    """How safe the fixes of a rule are, and why not."""
    found = [finding for finding in lint_text(text, "train.py", RULES) if finding.code == code]
    return [(item.fix.applicability, item.fix.unsafe_because) if item.fix else ("none", "") for item in found]


def test_every_unsafe_cut_says_why() -> None:
    codes = {"GPU101", "GPU102", "GPU103", "GPU104", "GPU106", "GPU107", "GPU201", "GPU202"}
    silent = [
        (case.name, finding.line, finding.code)
        for case in all_cases()
        if case.path.parent.name in codes
        for finding in lint_text(case.text, case.path.name, RULES)
        if finding.code in codes and finding.fix is not None
        if (finding.fix.applicability == "unsafe") != bool(finding.fix.unsafe_because)
    ]
    assert silent == []


LAYER = """
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Linear(4, 4).cuda()
        self.terms = []

    def add_term(self, term):
        self.terms.append(term)

    def forward(self, x):
        mean = self.mean(x)
        self.add_term(torch.mean(mean ** 2))
        return mean
"""


def test_a_term_that_a_layer_keeps_for_the_loss_is_not_cut() -> None:
    assert [item for item in fix_of(LAYER, "GPU101") if item[0] == "safe"] == []
    assert any("`self.terms`" in why for _, why in fix_of(LAYER, "GPU101"))


TRAINER = """
import torch
import torch.nn.functional as F
{imports}


class Training({base}):
    def __init__(self, net):
        self.net = torch.nn.Linear(4, 4).cuda()
        self.opt = torch.optim.SGD(self.net.parameters(), 0.1)
        self.terms = []

    def run(self, loader):
        for x, y in loader:
            out = self.net(x.cuda())
            self.terms.append(out.pow(2).mean())
            loss = F.mse_loss(out, y.cuda()) + {more}
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
"""


def test_what_an_unseen_method_may_read_is_not_safely_cut() -> None:
    seen = fix_of(TRAINER.format(imports="", base="object", more="0.0"), "GPU101")
    unseen = fix_of(
        TRAINER.format(imports="from bases import Base", base="Base", more="self.regularizer()"), "GPU101"
    )
    assert seen == [("safe", "")]
    assert unseen == [("unsafe", "`self.regularizer` is not seen, and may train on `self.terms`")]


RETURNED = """
import torch
import torch.nn.functional as F

def train(model, loader, opt, warm):
    model = torch.nn.Linear(4, 4).cuda()
    total = 0.0
    for x, y in loader:
        loss = F.mse_loss(model(x.cuda()), y.cuda())
        opt.zero_grad()
        {backward}
        opt.step()
        total += {value}
    return total
"""


@pytest.mark.parametrize(
    ("backward", "value", "safety"),
    [
        ("loss.backward()", "loss", ("safe", "")),
        (
            "if warm: loss.backward()",
            "loss",
            ("unsafe", "`total` is returned, and the caller may train on it"),
        ),
        (
            "loss.backward(retain_graph=True)",
            "loss",
            ("unsafe", "its graph is kept for another backward, which may go through `total`"),
        ),
    ],
)
def test_what_is_returned_is_cut_only_after_its_backward(
    backward: str, value: str, safety: tuple[str, str]
) -> None:
    assert fix_of(RETURNED.format(backward=backward, value=value), "GPU101") == [safety]


def test_what_may_be_no_tensor_is_not_safely_detached() -> None:
    text = RETURNED.format(backward="loss.backward()", value="loss").replace(
        "loss = F.mse_loss(model(x.cuda()), y.cuda())",
        "out = unseen(x.cuda()); loss = F.mse_loss(out, y.cuda())",
    )
    held = text.replace("total = 0.0", "total = []").replace(
        "total += loss", "total.append(model(x.cuda())[1:])"
    )
    assert "safe" not in [how for how, _ in fix_of(held, "GPU101")]


def test_an_average_is_cut_where_it_starts_as_well() -> None:
    text = (TRIAL.parent / "cases/GPU107/bug_first_batch_starts_attached.py").read_text()
    done = fixed(text, "train.py")
    assert "self.running = mean.detach()" in done
    assert "0.1 * mean.detach()" in done


def test_an_average_that_the_result_is_made_of_is_not_safely_cut() -> None:
    text = (TRIAL.parent / "cases/GPU107/bug_first_batch_starts_attached.py").read_text()
    used = text.replace("        return x / mean * self.gain", "        return x / self.running * self.gain")
    (found,) = fix_of(used, "GPU107")
    assert found[0] == "unsafe"
    assert "computed from the average" in found[1]


def test_all_states_of_a_round_are_cut_together() -> None:
    text = (TRIAL.parent / "cases/GPU103/bug_two_states_carried.py").read_text()
    found = [finding for finding in lint_text(text, "train.py", RULES) if finding.code == "GPU103"]
    assert len(found) == 2
    for finding in found:
        done, _ = apply_edits(text, [finding], True)
        assert "low = low.detach()" in done
        assert "high = high.detach()" in done


@pytest.mark.parametrize(
    ("use", "why"),
    [
        ("total += adapt(y)", "which may differentiate it"),
        ("self.kept = y; total += y.argmax().item()", "stored where others may differentiate it"),
        ("total = y", "a caller may differentiate it"),
    ],
)
def test_grad_stays_on_for_whoever_gets_the_outputs(use: str, why: str) -> None:
    text = EVALUATION.format(imports="from somewhere import adapt", use=use).replace(
        "measure(", "measure(self, "
    )
    reasons = fix_of(text, "GPU201")
    assert "safe" not in [how for how, _ in reasons]
    assert all(why in because for _, because in reasons)
