"""A safe fix changes no result: every program that has one is run on the CPU before and after it, with the same seeds. Step
for step the losses that go backward, the gradients and the parameters are the same, and in the end what is returned, kept
and printed.

Functions are run on made-up arguments, whole scripts for a few steps; what does not run before the fix proves nothing.
"""

from __future__ import annotations

import multiprocessing
import shutil
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from gpulint.rules import all_rules
from support import gpulint
from test_cases import all_cases
from trials import Trial, changes, ran, run

from gpulint.api import check_paths
from gpulint.documentation import page
from gpulint.findings import Finding
from gpulint.fixing import fix_text
from gpulint.linter import lint_text
from gpulint.rule import RuleSet

RULES = RuleSet(all_rules())
CASES = Path(__file__).parent / "cases"
FIXTURES = Path(__file__).parents[1] / "fixtures"
# As many programs as ran when this was written, less a few.
FLOOR = 115

pytestmark = pytest.mark.skipif(
    find_spec("torch") is None, reason="torch is not installed; programs import it"
)


def fixed(text: str, name: str, rules: RuleSet = RULES) -> str:
    """The text after all safe fixes."""
    return fix_text(text, lambda source: lint_text(source, name, rules), False).text


def variants(text: str, name: str) -> dict[str, str]:
    """The text after the safe fixes of each rule alone and after all of them, by what was applied."""
    offered = [finding for finding in lint_text(text, name, RULES) if _is_safe(finding)]
    codes = sorted({finding.code for finding in offered})
    alone = {
        code: fixed(text, name, RuleSet(tuple(rule for rule in RULES.rules if rule.code == code)))
        for code in (codes if len(codes) > 1 else [])
    }
    found = {**alone, "all": fixed(text, name)} if codes else {}  # most programs have the fixes of one rule
    return {applied: done for applied, done in found.items() if done != text}


def _is_safe(finding: Finding) -> bool:
    return finding.fix is not None and finding.fix.applicability == "safe"


def examples() -> Iterator[tuple[str, str]]:
    """Every labelled program, and the example of each rule's documentation where that is one file."""
    for case in all_cases():
        yield f"{case.path.parent.name}_{case.path.name}", case.text
    for rule in RULES.rules:
        code = page(rule).code("Example")
        if code is not None and "# file:" not in code:
            yield f"{rule.code}_example.py", code


@dataclass(frozen=True, slots=True)
class Pair:
    """A program as it is and with fixes applied."""

    applied: str
    before: Trial
    after: Trial


def pairs(folder: Path) -> list[Pair]:
    """Writes every program of which safe fixes change something: labelled ones, examples, fixtures, the project."""
    programs = list(examples())
    scripts = [(path.name, path.read_text(encoding="utf-8")) for path in sorted(FIXTURES.glob("*.py"))]
    texts = [text for _, text in programs + scripts]
    names = [name for name, _ in programs + scripts]
    found: list[Pair] = []
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
        for name, text, done in zip(
            names, texts, pool.map(variants, texts, names, chunksize=16), strict=True
        ):
            for applied, new in done.items():
                found.append(_pair(folder, name, applied, text, new, script=(name, text) in scripts))
    return [*found, *project_pairs(folder)]


def _pair(folder: Path, name: str, applied: str, text: str, done: str, script: bool) -> Pair:
    trials = []
    for when, source in (("before", text), (applied, done)):
        path = folder / when / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(source, encoding="utf-8")
        trials.append(Trial(f"{name} {when}", path, script))
    return Pair(applied, *trials)


def project_pairs(folder: Path) -> Iterator[Pair]:
    """The project of several files, after the fixes of each rule alone and after all of them."""
    original = folder / "project_before"
    shutil.copytree(FIXTURES / "project", original)
    safe = {finding.code for finding in check_paths(original) if _is_safe(finding)}
    for applied in (*sorted(safe), "all"):
        copy = folder / f"project_{applied}"
        shutil.copytree(original, copy)
        select = [] if applied == "all" else ["--select", applied]
        gpulint("check", "--fix", "--no-cache", *select, ".", cwd=copy)
        before = Trial("project before", original / "train.py", True)
        yield Pair(applied, before, Trial(f"project {applied}", copy / "train.py", True))


def wrong_pairs(found: list[Pair], folder: Path) -> tuple[dict[str, list[str]], int]:
    """What the fixes changed, by program, and how many programs ran. What a program does by chance is not held against
    its fix: the original is run once more where it differs."""
    trials = {trial.name: trial for pair in found for trial in (pair.before, pair.after)}
    outcomes = run(list(trials.values()), folder)
    wrong = {
        pair.after.name: told
        for pair in found
        if (told := changes(outcomes[pair.before.name], outcomes[pair.after.name]))
    }
    doubtful = {pair.before.name: pair.before for pair in found if pair.after.name in wrong}
    again = run(list(doubtful.values()), folder) if doubtful else {}
    by_chance = {name for name in again if changes(outcomes[name], again[name])}
    return (
        {
            pair.after.name: wrong[pair.after.name]
            for pair in found
            if pair.after.name in wrong and pair.before.name not in by_chance
        },
        len({pair.before.name for pair in found if ran(outcomes[pair.before.name])}),
    )


def test_programs_do_the_same_after_safe_fixes(tmp_path: Path) -> None:
    found = pairs(tmp_path)
    wrong, count = wrong_pairs(found, tmp_path)
    programs = {pair.before.name for pair in found}
    print(f"{count} of {len(programs)} programs with safe fixes ran, {len(found)} times fixed")
    assert wrong == {}
    assert count >= FLOOR, f"only {count} of {len(programs)} programs ran"


GAN = """
import torch
from torch import nn

netd, netg = nn.Linear(8, 8), nn.Linear(8, 8)

def train(loader, crit):
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
    "by_keyword": "loss = crit(netd(input=netg(noise)), torch.zeros(8, 8))",
    "both": "loss = crit(netd(real), torch.ones(8, 8)) + crit(netd(netg(noise)), torch.zeros(8, 8))",
    "on_one_line": "fake = netg(noise); loss = crit(netd(fake), torch.zeros(8, 8))",
    "on_two_lines": "fake = netg(noise)\n        loss = crit(netd(fake), torch.zeros(8, 8))",
    "over_lines": "loss = crit(netd(\n            netg(noise)\n        ), torch.zeros(8, 8))",
    "in_a_tuple": "judged, real_too = netd(netg(noise)), netd(real)\n        loss = crit(judged, real_too)",
    "named_in_between": "fake = netg(noise); out = netd(fake); loss = crit(out, torch.zeros(8, 8))",
}


def test_discriminators_learn_the_same_in_every_layout(tmp_path: Path) -> None:
    rules = RuleSet(tuple(rule for rule in all_rules() if rule.code == "GPU203"))
    found = []
    for name, step in STEPS.items():
        text = GAN.format(step=step)
        done = fixed(text, "gan.py", rules)
        assert done != text, name
        found.append(_pair(tmp_path, f"{name}.py", "all", text, done, script=False))
    assert wrong_pairs(found, tmp_path) == ({}, len(STEPS))


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
    text = (CASES / "GPU202/bug_teacher_beside_the_student.py").read_text()
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
    text = (CASES / "GPU102/bug_cat_unless_first.py").read_text()
    found = [finding for finding in lint_text(text, "train.py", RULES) if finding.code == "GPU102"]
    assert found
    assert all(finding.fix is None for finding in found)
