"""Whatever goes backward, or differentiates: no safe fix cuts what it goes through."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
from gpulint.rules import all_rules

from gpulint.findings import Confidence, Finding
from gpulint.fix.fixing import fix_text
from gpulint.lint.linter import lint_text
from gpulint.rule import RuleSet

RULES = RuleSet(all_rules(), confidence=Confidence.LOW)


# What goes backward, by what it is given. Of libraries without a row in the models one each: they are all alike unseen.
GIVEN_TO = (
    "torch.autograd.backward torch.autograd.grad torch.distributed.autograd.backward "
    ".manual_backward .optimizer_backward"
).split()
SCALED = "with amp.scale_loss(out.sum(), other) as scaled:\n            scaled.backward()"
FUNCTION_OF = (
    "torch.autograd.functional.anything torch.autograd.gradcheck torch.autograd.gradgradcheck torch.func.anything torch.vmap "
    "torch.nn.utils.stateless.functional_call torch.utils.checkpoint.anything torch.optim.LBFGS captum.anything "
    "transformers.Trainer pytorch_lightning.Trainer trl.anything .jacobian .vjp .jacrev .functional_call .train_batch .attribute .step"
).split()

# A forward whose result goes into what is called, beside what would otherwise be wasted.
GIVEN = """
{imports}
import torch
from torch import nn


def run(loader, other):
    model = nn.Linear(4, 1).cuda().eval()
    held = []
    for x in loader:
        out = model(x.cuda())
        {call}
        print(out.mean().item())
        held.append(out.mean())
    print(sum(held).item())
"""

# A function that is handed to what is called.
FUNCTION = """
{imports}
import torch
from torch import nn

model = nn.Linear(4, 1).cuda().eval()


def density(parts):
    held = []
    for x in parts:
        out = model(x.cuda())
        print(out.mean().item())
        held.append(out.mean())
    print(sum(held).item())


def run(loader, other):
    for x in loader:
        {call}
"""


def program(frame: str, name: str, given: str) -> str:
    """`frame` with a call of `name`: a qualified one, or a method's."""
    owner, _, last = name.rpartition(".")
    call = f"{last if owner else f'other.{last}'}({given})"
    return frame.format(imports=f"from {owner} import {last}" if owner else "", call=call)


def claims_no_backward(text: str) -> list[Finding]:
    """The findings that offer, as safe, to switch grad off or to cut a graph that no backward has gone through."""
    return [
        finding
        for finding in lint_text(text, "train.py", RULES)
        if finding.fix is not None and finding.fix.applicability == "safe"
        if finding.code in ("GPU201", "GPU202") or finding.reason.startswith("graph live")
    ]


@pytest.mark.parametrize(
    "text",
    [
        *(program(GIVEN, name, "out") for name in GIVEN_TO),
        *(program(FUNCTION, name, "density, x") for name in FUNCTION_OF),
        *(GIVEN.format(imports="", call=f"out.{name}(print)") for name in ("retain_grad", "register_hook")),
        GIVEN.format(imports="", call="out.sum().backward()"),
        GIVEN.format(imports="from apex import amp", call=SCALED),
    ],
    ids=[*GIVEN_TO, *FUNCTION_OF, ".retain_grad", ".register_hook", ".backward", "apex.amp.scale_loss"],
)
def test_no_safe_fix_cuts_what_it_goes_through(text: str) -> None:
    assert claims_no_backward(text) == []


@pytest.mark.parametrize("frame", [GIVEN, FUNCTION], ids=["given", "function"])
def test_without_an_entry_there_is_one(frame: str) -> None:
    """What the test above forbids is there where nobody goes backward."""
    assert claims_no_backward(frame.format(imports="import math", call="print(x.shape)"))


# torch's own, run on the CPU

TRAINING = """
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def train(batches):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1)).to(device)
    opt = torch.optim.SGD(model.parameters(), 0.1)
    weights = list(model.parameters())
    kept, total = [], 0.0
    for x, y in batches:
        x, y = x.to(device), y.to(device)
        opt.zero_grad()
{step}
        print(loss.item())
        kept.append(loss)
        total += loss
    return weights, float(total), float(sum(kept))
"""
LOSS = "loss = (model(x) - y).pow(2).mean()\n"
STEPS = {
    ".backward": LOSS + "loss.backward()\nopt.step()",
    "torch.autograd.grad": LOSS
    + "for p, g in zip(weights, torch.autograd.grad(loss, weights)):\n    p.grad = g\nopt.step()",
    "torch.func.": """def cost(params):
    return (torch.func.functional_call(model, params, (x,)) - y).pow(2).mean()
grads, loss = torch.func.grad_and_value(cost)(dict(model.named_parameters()))
for name, p in model.named_parameters():
    p.grad = grads[name].detach()
opt.step()""",
    ".step": """lbfgs = torch.optim.LBFGS(weights, lr=0.1, max_iter=2)
def closure():
    lbfgs.zero_grad()
    inner = (model(x) - y).pow(2).mean()
    inner.backward()
    return inner
loss = lbfgs.step(closure)""",
    ".requires_grad_": """x.requires_grad_()
out = model(x)
slope, = torch.autograd.grad(out.sum(), x, create_graph=True)
loss = (out - y).pow(2).mean() + slope.pow(2).mean()
loss.backward()
opt.step()""",
}


def outcome(text: str) -> Any:
    import torch

    space: dict[str, Any] = {}
    exec(compile(text, "train.py", "exec"), space)
    torch.manual_seed(1)
    weights, *sums = space["train"]([(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(3)])
    return [weight.tolist() for weight in weights], sums


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed; programs import it")
@pytest.mark.parametrize("name", STEPS)
def test_fixed_programs_train_the_same(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    step = "".join(f"        {line}\n" for line in STEPS[name].splitlines())
    text = TRAINING.format(step=step)
    done = fix_text(text, lambda source: lint_text(source, "train.py", RULES), False).text
    (weights, sums), (wanted, same_sums) = outcome(done), outcome(text)
    assert weights == wanted
    assert sums == pytest.approx(same_sums)  # `.item()` adds up in double precision


def test_a_plain_step_has_something_to_fix() -> None:
    step = "".join(f"        {line}\n" for line in STEPS[".backward"].splitlines())
    text = TRAINING.format(step=step)
    assert fix_text(text, lambda source: lint_text(source, "train.py", RULES), False).text != text
