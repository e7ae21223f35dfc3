"""Whatever goes backward, or differentiates: no safe fix cuts what it goes through."""

import pytest
from gpulint.rules import all_rules

from gpulint.findings import Confidence, Finding
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
