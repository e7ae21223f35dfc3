"""An unsafe fix may change results, and says so; it must not raise. Where it might, another edit is offered, or none.

`retain_graph=True` is taken out without asking only where every part of the graph is made anew before each backward."""

from pathlib import Path

import pytest
from gpulint.rules import all_rules
from needs import needs_torch
from trials import Trial, breaks, ran, run

from gpulint.findings import Confidence
from gpulint.fix.fixing import fix_text
from gpulint.lint.linter import lint_text
from gpulint.rule import RuleSet

DOUBTING = RuleSet(all_rules(), confidence=Confidence.LOW)

CACHED = """
import torch
from torchvision.models import resnet18

net = resnet18().cuda().eval()
FEATURES = {{}}

@torch.no_grad()
def features(name, image):
    if name not in FEATURES:
        FEATURES[name] = net(image.cuda())
    return FEATURES[name]

def use(head, name, image):
    found = features(name, image)
    return {use}
"""


def fixed(text: str, *codes: str) -> str:
    """The text after all fixes, of some rules or of all."""
    rules = tuple(rule for rule in DOUBTING.rules if not codes or rule.code in codes)
    some = RuleSet(rules, confidence=Confidence.LOW)
    return fix_text(text, lambda source: lint_text(source, "train.py", some), True).text


@pytest.mark.parametrize(
    ("use", "offered"), [("found.cpu().numpy()", True), ("head.weight.cuda() @ found.T", False)]
)
def test_what_a_cache_gives_to_be_computed_with_stays_on_the_device(use: str, offered: bool) -> None:
    assert ("image.cuda()).cpu()" in fixed(CACHED.format(use=use), "GPU106")) == offered


def test_every_volatile_input_of_a_block_is_cured_at_once() -> None:
    text = (
        "import torch\nfrom torch.autograd import Variable\n\n\ndef predict(net, x, y):\n"
        "    x = Variable(x.cuda(), volatile=True)\n    y = Variable(y.cuda(), volatile=True)\n    return net(x, y).data\n"
    )
    done = fixed(text, "GPU204")
    assert "volatile" not in done
    assert done.count("with torch.no_grad():") == 1


# What raises on a card is told without one

MIXES = """
import torch

def embed(net: torch.nn.Module, loader, anchors):
    kept = []
    for x, _ in loader:
        kept.append(net(x.cuda()){move})
    return torch.cat(kept) * anchors.cuda().mean(0)
"""


@needs_torch
def test_a_copy_on_the_host_that_is_computed_with_is_told(tmp_path: Path) -> None:
    moves = {"before": "", "cut": ".detach()", "moved": ".detach().cpu()", "listed": ".detach().tolist()"}
    trials = []
    for name, move in moves.items():
        path = tmp_path / f"{name}.py"
        path.write_text(MIXES.format(move=move))
        trials.append(Trial(name, path, card=True))
    left = run(trials, tmp_path)
    assert ran(left["before"])
    assert breaks(left["before"], left["cut"]) == []
    (told,) = breaks(left["before"], left["moved"])
    assert "Expected all tensors to be on the same device" in told
    assert breaks(left["before"], left["listed"]) != []


@pytest.mark.parametrize(
    ("start", "first"),
    [
        ("state, other = None, None", "state = None if state is None else "),
        ("state = other = None", "state = None if state is None else "),
        ("state, other = [None] * 2", "state = None if state is None else "),
        ("state, other = (None, None), None", "None if part is None else part.detach() for part in state"),
    ],
)
def test_a_state_that_is_nothing_in_the_first_round_is_not_cut_there(start: str, first: str) -> None:
    text = (
        "import torch\n\n\ndef train(batches, model, criterion, optimizer):\n"
        f"    {start}\n"
        "    for x, y in batches:\n        out, state, other = model(x.cuda(), state, other)\n"
        "        loss = criterion(out, y.cuda())\n        optimizer.zero_grad()\n"
        "        loss.backward(retain_graph=True)\n        optimizer.step()\n"
    )
    done = fixed(text, "GPU103")
    assert first in done
    assert "other = None if other is None else " in done


@pytest.mark.parametrize(
    ("cleanup", "left"),
    [
        ("if torch.cuda.is_available():\n            torch.cuda.empty_cache()", ""),
        ("if torch.cuda.is_available():\n            torch.cuda.empty_cache()\n            gc.collect()", ""),
        ("if torch.cuda.is_available(): torch.cuda.empty_cache()", ""),
        (
            "if torch.cuda.is_available():\n            torch.cuda.empty_cache()\n        else:\n            print(x)",
            "if torch.cuda.is_available():\n            pass\n        else:",
        ),
    ],
)  # fmt: skip
def test_an_if_goes_with_all_that_it_decides_about(cleanup: str, left: str) -> None:
    text = (
        "import gc\nimport torch\nfrom torch.nn.functional import mse_loss\n\n\ndef train(net, loader, optimizer):\n"
        "    net.cuda()\n    for step, (x, y) in enumerate(loader):\n        loss = mse_loss(net(x.cuda()), y.cuda())\n"
        f"        optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()\n        {cleanup}\n"
    )
    done = fixed(text, "GPU501", "GPU502")
    assert "empty_cache" not in done
    assert ("pass" in done) == bool(left)
    assert left in done
