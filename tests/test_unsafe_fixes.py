"""An unsafe fix may change results, and says so; it must not raise. Where it might, another edit is offered, or none."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from gpulint.rules import all_rules
from trials import Trial, breaks, ran, run

from gpulint.api import check_paths
from gpulint.findings import Confidence
from gpulint.fix.fixing import fix_text
from gpulint.lint.linter import lint_text
from gpulint.rule import RuleSet

DOUBTING = RuleSet(all_rules(), confidence=Confidence.LOW)

KEPT = """
import torch
import torch.nn.functional as F

def embed(net: torch.nn.Module, loader, anchors):
    net.cuda()
    kept = []
    for x, y in loader:
        out = F.normalize(net(x.cuda()), dim=1)
        kept.append({value})
    {use}
"""
SNAPSHOTS = """
import copy
import torch

def train(net: torch.nn.Module, tasks, fit):
    net = net.cuda()
    states = []
    for task in tasks:
        fit(net, task)
        states.append(copy.deepcopy(net.state_dict()))
        {use}
"""
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
HOOKED = """
import torch
from torch import nn

def train(model: nn.Module, loader, optimizer, probe):
    seen = []
    model.cuda()
    model.hidden.register_forward_hook(lambda module, args, output: seen.append(output))
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    {use}
"""
HANDED = """
import torch

class Meter:
    def __init__(self):
        self.sums = {}

    def update(self, parts):
        for name in parts:
            self.sums[name] = self.sums.get(name, 0) + parts[name]

def train(net, criterion, loader, optimizer):
    meter = Meter()
    for x, y in loader:
        parts = criterion(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        sum(parts.values()).backward()
        optimizer.step()
        meter.update(parts)
"""
OLD = """
import torch
from torch.autograd import Variable

def train(G: torch.nn.Module, D: torch.nn.Module, loader, crit):
    opt_g = torch.optim.Adam(G.parameters())
    opt_d = torch.optim.Adam(D.parameters())
    for real in loader:
        noise = Variable(torch.randn(len(real), 8).cuda())
        fake = G(noise)
        loss_d = crit(D(fake))
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
        loss = crit(D(G(noise)))
        opt_g.zero_grad()
        loss.backward()
        opt_g.step()
        print(loss.data[0])

def test(G: torch.nn.Module, loader):
    G.eval()
    right = 0
    for x, y in loader:
        right += (G(Variable(x.cuda())).max(1)[1] == y).sum()
    return right
"""
BESIDE = """
import torch

class Edges:
    def __init__(self):
        self.filters = torch.nn.Sequential(*[torch.nn.Conv2d(64, 64, 300) for _ in range(9)]).cuda()

    def __call__(self, image: torch.Tensor):
        edges = self.filters(image.cuda()).detach()
        return torch.cat([image.cuda(), edges])
"""


def fixed(text: str, *codes: str) -> str:
    """The text after all fixes, of some rules or of all."""
    rules = tuple(rule for rule in DOUBTING.rules if not codes or rule.code in codes)
    some = RuleSet(rules, confidence=Confidence.LOW)
    return fix_text(text, lambda source: lint_text(source, "train.py", some), True).text


@pytest.mark.parametrize(
    ("value", "use", "fix"),
    [
        ("out", "return torch.cat(kept).mean(0) @ anchors.cuda()", "out.detach()"),
        ("out", "return [one * anchors for one in kept]", "out.detach()"),
        ("out", "centre = torch.stack(kept); return centre.to(anchors.device) - anchors", "out.detach()"),
        ("out", "return torch.cat(kept).cpu().numpy()", "out.detach().cpu()"),
        ("out", "return torch.cat(kept).tolist()", "out.detach().cpu()"),
        ("out.cpu().squeeze()", "return torch.cat(kept).numpy(force=True)", "out.cpu().squeeze().detach()"),
    ],
)
def test_what_is_kept_waits_on_the_host_only_where_it_ends_there(value: str, use: str, fix: str) -> None:
    done = fixed(KEPT.format(value=value, use=use), "GPU101")
    assert f"kept.append({fix})" in done or f"kept.append({value})" in done
    assert ".cpu())" not in done.replace(fix, "") or fix.endswith(".cpu()")


def test_what_may_be_a_dict_is_not_asked_for_its_graph() -> None:
    assert ".detach()" not in fixed(HANDED)


@pytest.mark.parametrize(
    ("use", "offered"),
    [
        ("net.load_state_dict(states[-1])", True),
        ("torch.save(states[-1], 'last.pt')", True),
        ("last = states[-1]; new = {k: last[k] + v for k, v in net.state_dict().items()}", False),
        ("net.load_state_dict({k: (v + states[0][k]) / 2 for k, v in net.state_dict().items()})", False),
    ],
)
def test_copies_of_weights_that_are_computed_with_stay_where_they_are(use: str, offered: bool) -> None:
    assert (".cpu()" in fixed(SNAPSHOTS.format(use=use), "GPU404")) == offered


@pytest.mark.parametrize(
    ("use", "offered"), [("found.cpu().numpy()", True), ("head.weight.cuda() @ found.T", False)]
)
def test_what_a_cache_gives_to_be_computed_with_stays_on_the_device(use: str, offered: bool) -> None:
    assert ("image.cuda()).cpu()" in fixed(CACHED.format(use=use), "GPU106")) == offered


@pytest.mark.parametrize(
    ("use", "fix"),
    [
        ("return torch.cat(seen).cpu()", "output.detach().cpu()"),
        ("return torch.cat(seen) @ probe.cuda()", "output.detach()"),
    ],
)
def test_what_a_hook_keeps_to_be_computed_with_stays_on_the_device(use: str, fix: str) -> None:
    text = HOOKED.format(use=use)
    assert fixed(text, "GPU105") in (text, text.replace("append(output)", f"append({fix})"))


def test_a_torch_without_no_grad_gets_what_it_has() -> None:
    done = fixed(OLD)
    assert "no_grad" not in done
    assert "D(fake.detach())" in done


def test_every_volatile_input_of_a_block_is_cured_at_once() -> None:
    text = (
        "import torch\nfrom torch.autograd import Variable\n\n\ndef predict(net, x, y):\n"
        "    x = Variable(x.cuda(), volatile=True)\n    y = Variable(y.cuda(), volatile=True)\n    return net(x, y).data\n"
    )
    done = fixed(text, "GPU204")
    assert "volatile" not in done
    assert done.count("with torch.no_grad():") == 1


def test_a_decorator_does_not_cut_what_is_given_back_with_its_own_graph() -> None:
    done = fixed(BESIDE, "GPU201")
    assert "@torch" not in done
    assert "with torch.no_grad():\n            edges = " in done


def test_nothing_goes_under_no_grad_that_trains_out_of_a_starred_import(tmp_path: Path) -> None:
    (tmp_path / "fitting.py").write_text(
        "import torch\n\n\ndef fit_layer(net, layer, data):\n    optimizer = torch.optim.Adam(layer.parameters())\n"
        "    for x in data:\n        loss = layer(x).square().mean()\n        optimizer.zero_grad()\n"
        "        loss.backward()\n        optimizer.step()\n"
    )
    (tmp_path / "main.py").write_text(
        "import torch\nfrom fitting import *\n\n\ndef calibrate(net: torch.nn.Module, data):\n    net = net.cuda()\n    net.eval()\n\n"
        "    def fit_model(model):\n        for layer in model.children():\n            fit_layer(net, layer, data)\n\n"
        "    fit_model(net)\n    return net\n"
    )
    found = check_paths(tmp_path / "main.py", {"select": ["GPU201"], "confidence": "low"})
    assert all(finding.fix is None for finding in found)


def test_gradients_read_by_hand_are_wanted() -> None:
    text = """
import torch
import torch.nn.functional as F

def step(net, copies, x, y, optimizer: torch.optim.Optimizer):
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    shifted = copies.cuda()
    loss = F.cross_entropy(net(x.cuda()), y.cuda())
    loss.backward()
    there = F.cross_entropy(shifted(x.cuda()), y.cuda())
    there.backward()
    for param, other in zip(net.parameters(), shifted.parameters()):
        param.grad -= 0.01 * other.grad
    optimizer.step()
"""
    assert fixed(text, "GPU202") == text


# What raises on a card is told without one

MIXES = """
import torch

def embed(net: torch.nn.Module, loader, anchors):
    kept = []
    for x, _ in loader:
        kept.append(net(x.cuda()){move})
    return torch.cat(kept) * anchors.cuda().mean(0)
"""


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed; programs import it")
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


@pytest.mark.parametrize("quote", ["'", '"'])
def test_texts_are_in_the_quotes_of_the_file(quote: str) -> None:
    text = (
        "import torch\nimport gc\n\n\ndef train(net, loader, optimizer):  # the user's\n    print('how many \"epochs\"', QtrainQ, QfitQ)\n"
        "    for x in loader:\n        loss = net(x.cuda()) * torch.ones(3).cuda()\n        optimizer.zero_grad()\n"
        "        loss.backward()\n        optimizer.step()\n"
    )
    done = fixed(text.replace("Q", quote), "GPU505")
    assert f"torch.ones(3, device={quote}cuda{quote})" in done


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
