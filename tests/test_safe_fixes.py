"""A safe fix changes no result: every program that has one is run on the CPU before and after it, with the same seeds. Step
for step the losses that go backward, the gradients and the parameters are the same, and in the end what is returned, kept
and printed. After all fixes, unsafe ones too, what ran before still raises nothing, on a card that is pretended.

Functions are run on made-up arguments, whole scripts for a few steps; what does not run before the fix proves nothing.
"""

import ast
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
from gpulint.rules import all_rules
from needs import needs_torch
from support import gpulint, less_to_do
from test_cases import all_cases, findings, implemented, labelled
from trials import Trial, breaks, changes, ran, run

from gpulint.analysis.project.file import File
from gpulint.analysis.queries.cover import shares_rows
from gpulint.api import check_paths
from gpulint.findings import Confidence, Finding
from gpulint.fix.fixing import fix_text
from gpulint.lint.documentation import page
from gpulint.lint.linter import lint_text
from gpulint.rule import RuleSet

RULES = RuleSet(all_rules())
DOUBTING = replace(RULES, confidence=Confidence.LOW)
FIXTURES = Path(__file__).parents[1] / "fixtures"
FLOOR = 0.1  # of the programs with fixes: all that run without what they import

pytestmark = needs_torch  # programs import it


KNOWN: dict[str, list[Finding]] = {}  # by text: what other tests of the cases have asked already
UNSAFE = "unsafe"  # all fixes, those too that somebody should read first


def fixed(text: str, name: str, rules: RuleSet = RULES, unsafe: bool = False) -> str:
    """The text after all safe fixes, or after all there are."""
    codes = {rule.code for rule in rules.rules}

    def among(source: str) -> list[Finding]:  # no finding depends on which other rules are selected
        every = linted(source, name)
        return [one for one in every if one.code in codes and one.confidence.reaches(rules.confidence)]

    return fix_text(text, among, unsafe).text


@lru_cache(maxsize=64)
def linted(text: str, name: str) -> list[Finding]:
    return KNOWN[text] if text in KNOWN else lint_text(text, name, DOUBTING)


def variants(text: str, name: str) -> dict[str, str]:
    """The text after the safe fixes of each rule alone, after all of them, and after all fixes, by what was applied."""
    offered = [finding for finding in linted(text, name) if finding.fix is not None]
    if not offered:  # most look-alikes
        return {}
    codes = sorted({finding.code for finding in offered if _is_safe(finding)})
    alone = {
        code: fixed(text, name, RuleSet(tuple(rule for rule in RULES.rules if rule.code == code)))
        for code in (codes if len(codes) > 1 else [])
    }
    found = {**alone, "all": fixed(text, name)} if codes else {}  # most programs have the fixes of one rule
    everything = fixed(text, name, DOUBTING, unsafe=True)
    if everything not in found.values():
        found[UNSAFE] = everything
    return {applied: done for applied, done in found.items() if done != text}


def _is_safe(finding: Finding) -> bool:
    return finding.fix is not None and finding.fix.applicability == "safe"


def examples() -> Iterator[tuple[str, str]]:
    """The example of each rule's documentation, where that is one file."""
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

    def told(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
        """What the fixes changed that they may not: unsafe ones may change results, and nothing may raise."""
        return breaks(before, after) if self.applied == UNSAFE else changes(before, after)


def pairs(folder: Path, programs: Iterable[tuple[str, str]], scripts: bool = False) -> list[Pair]:
    """Writes the programs, by name and text, of which fixes change something."""
    return [
        _pair(folder, name, applied, text, new, scripts)
        for name, text in programs
        for applied, new in variants(text, name).items()
    ]


def _pair(folder: Path, name: str, applied: str, text: str, done: str, script: bool = False) -> Pair:
    trials = []
    card = applied == UNSAFE and not script
    arguments = less_to_do(Path(name)) if script else ()
    for when, source in (("before", text), (applied, done)):
        path = folder / when / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(source, encoding="utf-8")
        trials.append(Trial(f"{name} {when}{' on a card' * card}", path, script, card, arguments))
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
        if (told := pair.told(outcomes[pair.before.name], outcomes[pair.after.name]))
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


@pytest.mark.parametrize("question", sorted({case.question for case in all_cases()}))
def test_programs_do_the_same_after_safe_fixes(question: str, tmp_path: Path) -> None:
    cases = [case for case in all_cases() if case.question == question and not case.files]
    others = RuleSet(tuple(rule for rule in RULES.rules if rule.code not in implemented()))
    for case in cases:
        KNOWN[case.text] = [*findings(case), *lint_text(case.text, case.path.name, others)]
    _do_the_same(pairs(tmp_path, [(case.path.name, case.text) for case in cases]), tmp_path)


def test_scripts_do_the_same_after_safe_fixes(tmp_path: Path) -> None:
    scripts = [(path.name, path.read_text(encoding="utf-8")) for path in sorted(FIXTURES.glob("*.py"))]
    found = [*pairs(tmp_path, examples()), *pairs(tmp_path, scripts, True), *project_pairs(tmp_path)]
    _do_the_same(found, tmp_path)


def _do_the_same(found: list[Pair], folder: Path) -> None:
    wrong, count = wrong_pairs(found, folder)
    programs = {pair.before.name for pair in found}
    print(f"{count} of {len(programs)} programs with fixes ran, {len(found)} times fixed")
    assert wrong == {}
    assert count >= FLOOR * len(programs), f"only {count} of {len(programs)} programs ran"


# Fixes that are wrong, by what they break. The trial must tell each of them: else it would prove nothing.

WRONG_STEP = """
import torch
import torch.nn.functional as F
from torch import nn

G, D = nn.Linear(4, 8), nn.Linear(8, 1)
opt_g = torch.optim.SGD(G.parameters(), 0.1)
opt_d = torch.optim.SGD(D.parameters(), 0.1)
noise = torch.randn(6, 4)

def train(rounds):
    shown = []
    for _ in range(3):
        {step}
        opt_g.step()
        opt_d.step()
        opt_g.zero_grad()
        opt_d.zero_grad()
        shown.append(float(loss))
    return shown

def physics_loss(model, points):
    total = 0
    for point in (points, points * 2):
        total = total + {term}
    return total

def sampled():
    {sample}
"""
FAKE = "fake = G(noise); loss = D(fake).square().mean()"
RIGHT = {
    "step": f"{FAKE} + fake.mean(); loss.backward()",
    "term": "F.softplus(model(point)).mean()",
    "sample": "return torch.randn(3)",
}
# By how each is told: the part of the program, as it is and after the fix.
WRONG = {
    "physics_loss: had 3 events and has 0": ("term", RIGHT["term"], f"{RIGHT['term']}.detach()"),
    "train: event 1 was": ("step", RIGHT["step"], f"{FAKE} + fake.mean().detach(); loss.backward()"),
    "train: ran, and now ends with RuntimeError": (
        "step",
        f"{FAKE}; loss.backward(retain_graph=True); loss.backward()",
        f"{FAKE}; loss.backward(); loss.backward()",
    ),
    "train: ran, and now ends with UnboundLocalError": (
        "step",
        f"{FAKE}; loss.backward(); print(fake.sum())",
        f"{FAKE}; del fake; loss.backward(); print(fake.sum())",
    ),
    "sampled: what is returned was": ("sample", RIGHT["sample"], "torch.rand(1); return torch.randn(3)"),
    "sampled: printed": ("sample", "print(torch.ones(3).mean())", "print(torch.ones(3).sum())"),
    "sampled: what is grad was": (
        "sample",
        RIGHT["sample"],
        f"torch.set_grad_enabled(False); {RIGHT['sample']}",
    ),
}


def test_a_wrong_fix_is_told(tmp_path: Path) -> None:
    found = {}
    for number, (told, (part, *texts)) in enumerate(WRONG.items()):
        before, after = (WRONG_STEP.format(**{**RIGHT, part: text}) for text in texts)
        found[told] = _pair(tmp_path, f"wrong_{number}.py", "all", before, after)
    wrong, count = wrong_pairs(list(found.values()), tmp_path)
    assert count == len(WRONG)
    for told, pair in found.items():
        (sentence,) = wrong.get(pair.after.name, ["nothing is told"])
        assert sentence.startswith(told)


def test_what_a_program_does_by_chance_is_not_held_against_its_fix(tmp_path: Path) -> None:
    text = "import os\n\ndef draw():\n    return int.from_bytes(os.urandom(8))\n"
    pair = _pair(tmp_path, "chance.py", "all", text, f"# fixed\n{text}")
    assert wrong_pairs([pair], tmp_path) == ({}, 1)


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
    "on_two_lines": "fake = netg(noise)\n        loss = crit(netd(fake), torch.zeros(8, 8))",
    "over_lines": "loss = crit(netd(\n            netg(noise)\n        ), torch.zeros(8, 8))",
    "in_a_tuple": "judged, real_too = netd(netg(noise)), netd(real)\n        loss = crit(judged, real_too)",
}


def test_discriminators_learn_the_same_in_every_layout(tmp_path: Path) -> None:
    rules = RuleSet(tuple(rule for rule in all_rules() if rule.code == "GPU203"))
    found = []
    for name, step in STEPS.items():
        text = GAN.format(step=step)
        done = fixed(text, "gan.py", rules)
        assert done != text, name
        found.append(_pair(tmp_path, f"{name}.py", "all", text, done))
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


DIFFERENTIATES = """
def slope(x):
    x = x.detach().requires_grad_()
    return torch.autograd.grad((x**2).sum(), x)[0]


def steepness(x):
    return slope(x).abs().max().item()
"""


@pytest.mark.parametrize(
    ("imports", "use"),
    [
        ("from aligning import register", "total += register(y.detach(), x)"),
        ("import aligning", "total += aligning.Registration().fit(y.detach(), x)"),
        ("import inspect", "total += y.argmax().item() + len(inspect.signature(measure).parameters)"),
        ("from somewhere import table", "total += y.argmax().item(); table[0] = measure"),
        (DIFFERENTIATES, "total += y.argmax().item() + steepness(x.cuda())"),
    ],
    ids=["unseen_function", "unseen_object", "signature_read", "registered", "differentiates"],
)
def test_no_decorator_where_more_than_the_forward_could_be_meant(imports: str, use: str) -> None:
    text = evaluation(imports, use)
    assert "@torch" not in text
    assert "with torch.no_grad():" in text
    if "aligning" in imports:
        assert "        with torch.no_grad():\n            y = model(x.cuda())\n        total +=" in text


MEASURE = EVALUATION.format(imports="", use="total += y.argmax().item()")
HEAD, FUNCTION = MEASURE.split("def measure(")
METHOD = indent(f"def measure(self, {FUNCTION}", "    ")
METHOD = f"{HEAD}from bases import Base\n\nclass Measuring(Base):\n{METHOD}"
READS = "from measuring import measure\nfrom parts import net, data\nprint(measure.__code__.co_varnames)\n"
META = """
import abc
import inspect


class Meta(type):
    def __new__(cls, name, bases, space):
        for key, value in list(space.items()):
            if callable(value):
                space[key] = by_name(value, inspect.getfullargspec(value).args)
        return super().__new__(cls, name, bases, space)


class Base(metaclass=Meta):
    pass
"""


@pytest.mark.parametrize(
    ("text", "other", "decorated"),
    [
        (MEASURE, "", True),
        (MEASURE, READS, False),
        (MEASURE, READS.replace(".__code__.co_varnames", "(net, data)"), True),
        (METHOD, META, False),
        (METHOD, META.replace("=Meta", "=abc.ABCMeta"), True),
        (METHOD, META.replace("metaclass=Meta", ""), True),
    ],
)
def test_no_decorator_where_another_file_reads_the_signature(
    tmp_path: Path, text: str, other: str, decorated: bool
) -> None:
    (tmp_path / "measuring.py").write_text(text)
    (tmp_path / "bases.py").write_text(other)
    (finding,) = check_paths(tmp_path, {"select": ["GPU201"]})
    assert finding.fix.applicability == "safe"
    assert ("decorate" in finding.fix.message) == decorated


def test_a_generator_is_not_left_with_grad_off() -> None:
    text = evaluation("", "yield y.argmax().item()")
    assert "    with torch.no_grad():\n        for" not in text


def test_a_statement_that_has_the_students_graph_is_left_alone() -> None:
    text = labelled("GPU202", "bug_teacher_beside_the_student")
    assert fixed(text, "train.py") == text


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
        ("loss", "print([one.item() for one in held])", "loss.detach()"),
        ("loss", "print(max(held, key=lambda one: one.item()))", "loss.detach()"),
        ("loss", "report(held)", "loss.detach()"),
        ("loss.expand(4)", "print(held)", "loss.expand(4).detach()"),
        ("out.unsqueeze(0).sum((0,))", "print(held)", "out.unsqueeze(0).sum((0,)).detach()"),
    ],
)
def test_a_number_is_held_only_where_one_will_do(value: str, use: str, fix: str) -> None:
    done = fixed(HELD.format(value=value, use=use), "train.py")
    assert f"held.append({fix})" in done


# What is offered, and how safe it is said to be


def offered(code: str, name: str) -> list[tuple[int, str | None, str]]:
    """Of a labelled program the lines with findings of a rule, how safe each fix is, and why not."""
    text = labelled(code, name)
    found = [finding for finding in lint_text(text, f"{name}.py", DOUBTING) if finding.code == code]
    return [
        (one.line, one.fix and one.fix.applicability, one.fix.unsafe_because if one.fix else "")
        for one in found
    ]


@pytest.mark.parametrize(
    ("code", "name", "safety"),
    [
        ("GPU203", "bug_output_differentiated_by_the_fake", [None]),
        ("GPU203", "bug_same_output_for_both_losses", [None]),
        ("GPU203", "bug_method_with_attribute", ["unsafe"]),
        ("GPU203", "bug_discriminator_sees_graph", ["safe"]),
        ("GPU204", "bug_volatile_carried_state", ["unsafe", None]),
        ("GPU204", "bug_with_class_not_instance", ["safe"]),
        ("GPU301", "bug_each_step_of_a_layer", ["unsafe"]),
        ("GPU301", "bug_loss_handed_on", ["unsafe", "unsafe", "unsafe"]),
        ("GPU401", "bug_name_of_a_script", ["unsafe"]),
        ("GPU401", "bug_lm_logits_before_backward", ["safe"]),
        ("GPU401", "bug_deleted_after_the_peak", ["unsafe", "unsafe"]),
        ("GPU403", "bug_own_way_of_loading", ["unsafe"]),
        ("GPU407", "bug_vision_transformer_halved", ["safe", "safe"]),
        ("GPU407", "bug_halved_for_training", ["unsafe"]),
        ("GPU407", "bug_language_model_of_unknown_type", ["unsafe", "unsafe", None]),
        ("GPU409", "bug_asked_for_and_not_read", ["safe", None, "unsafe", "unsafe", "unsafe"]),
        ("GPU108", "bug_a_score_for_each_word", ["unsafe"]),
        ("GPU108", "bug_arguments_of_the_command_line", [None, "unsafe"]),
        ("GPU303", "bug_rounds_that_stand_alone", [None, None, None]),
        ("GPU303", "bug_modulo_accumulation", [None, None, None]),
        (
            "GPU505",
            "bug_made_on_the_host_in_each_step",
            [None, "unsafe", "safe", "unsafe", "unsafe", None, "unsafe", None],
        ),
        ("GPU605", "bug_networks_before_the_card", [None, None, None]),
        ("GPU405", "bug_figures_in_between", ["unsafe"]),
        ("GPU405", "bug_empty_cache_before_del", ["safe"]),
        ("GPU501", "bug_every_step", ["safe"]),
        ("GPU501", "bug_wanted_by_others", ["unsafe", "unsafe"]),
        ("GPU502", "bug_every_step", ["unsafe"]),
        ("GPU503", "bug_every_step", ["unsafe"]),
        ("GPU503", "bug_callers_in_sight", ["safe"]),
        ("GPU503", "bug_step_of_an_unseen_caller", ["unsafe"]),
        ("GPU603", "bug_cuda_amp", ["unsafe", "unsafe"]),
    ],
)
def test_a_fix_is_as_safe_as_can_be_proven(code: str, name: str, safety: list[str | None]) -> None:
    found = offered(code, name)
    assert [applicability for _, applicability, _ in found] == safety
    assert all(bool(why) == (applicability == "unsafe") for _, applicability, why in found)


@pytest.mark.parametrize(
    ("made", "safety"),
    [
        ("torch.zeros(1024, 1024).to(device)", ["safe"]),
        ("torch.eye(1024).to(net.device)", ["safe"]),
        ("torch.ones((1024, 1024)).cuda()", ["safe"]),
        ("torch.arange(1048576).to(device)", ["unsafe"]),
        ("torch.ones(3).to(kind)", ["unsafe"]),
        ("torch.zeros(3, requires_grad=True).to(device)", [None]),  # a leaf on the host, and a copy of it
        ("torch.tensor([1.0]).to(device)", [None]),  # it is copied wherever it is made
        ("torch.ones(3).to(device, non_blocking=True)", []),
    ],
)
def test_a_tensor_is_made_on_the_device_where_it_is_the_same_there(
    made: str, safety: list[str | None]
) -> None:
    text = (
        "import torch\n\ndevice = torch.device('cuda')\n\n\ndef train(net, loader, optimizer, kind):\n"
        f"    for x in loader:\n        loss = (net(x.to(device)) * {made}).mean()\n        optimizer.zero_grad()\n"
        "        loss.backward()\n        optimizer.step()\n"
    )
    found = [one for one in lint_text(text, "train.py", DOUBTING) if one.code == "GPU505"]
    assert [one.fix and one.fix.applicability for one in found] == safety


def test_an_average_that_starts_in_the_same_expression_is_cut_in_both_branches() -> None:
    text = labelled("GPU107", "bug_average_starts_with_the_first")
    done = fixed(text, "train.py")
    both = "mean.detach() if self.centre is None" in done and "+ mean.detach() * (1" in done
    assert both or done == text
    assert "return teacher_scores - mean\n" in done


def test_a_type_that_is_asked_for_keeps_its_name() -> None:
    text = "import torch\n\nscaler = torch.cuda.amp.GradScaler()\nassert isinstance(scaler, {})\n"
    for asked, safe in (("torch.cuda.amp.GradScaler", False), ("torch.amp.GradScaler", True)):
        options = {"GPU603": {"target-torch": "2.4"}}
        (finding,) = lint_text(text.format(asked), "scaling.py", RuleSet(RULES.rules, options))
        assert (finding.fix.applicability == "safe") == safe


# Where a graph is cut


def fix_of(text: str, code: str) -> list[tuple[str, str]]:
    """How safe the fixes of a rule are, and why not."""
    found = [finding for finding in lint_text(text, "train.py", RULES) if finding.code == code]
    return [(item.fix.applicability, item.fix.unsafe_because) if item.fix else ("none", "") for item in found]


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


def test_what_may_be_no_tensor_is_not_safely_cut() -> None:
    text = TRAINER.format(imports="", base="object", more="0.0")
    text = text.replace("self.terms.append(out.pow(2).mean())", "self.total += self.net(x)['loss']")
    (found,) = lint_text(text, "train.py", DOUBTING)
    assert found.fix.unsafe_because == "`self.net(x)['loss']` may be no tensor"


KEEPER = """
import torch


class Trainer:
    def __init__(self, net: torch.nn.Module, loader):
        self.net, self.loader, self.best = net.cuda(), loader, None

    def validate(self):
        self.net.eval()
        scores = [torch.nn.functional.cross_entropy(self.net(x.cuda()), y.cuda()) for x, y in self.loader]
        self.best = torch.stack(scores).mean()

{end}
"""


@pytest.mark.parametrize(
    ("end", "safety"),
    [
        ("trainer = Trainer(torch.nn.Linear(8, 2), [])\ntrainer.validate()\nprint(trainer.best)", "safe"),
        ("trainer = Trainer(torch.nn.Linear(8, 2), [])\ntrainer.validate()\ntrainer.best.backward()", None),
        ("print(Trainer)", "unsafe"),
    ],
)
def test_an_evaluation_may_keep_its_result_where_all_who_read_it_are_seen(
    end: str, safety: str | None
) -> None:
    found = [one for one in lint_text(KEEPER.format(end=end), "train.py", RULES) if one.code == "GPU201"]
    assert [one.fix.applicability for one in found if one.fix] == ([safety] if safety else [])


@pytest.mark.parametrize(("text", "shares"), [("a = 1; b = 2\n", True), ("a = 1\nb = 2\n", False)])
def test_a_statement_of_a_module_may_share_its_row(text: str, shares: bool) -> None:
    file = File("a.py", text, ast.parse(text))
    assert shares_rows(file.body.flow, file.tree.body[0]) is shares


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
