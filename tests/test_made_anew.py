"""`retain_graph=True` is taken out without asking only where every part of the graph is made anew before each backward."""

from __future__ import annotations

from pathlib import Path

import pytest
from gpulint.rules import all_rules

from gpulint.findings import Confidence
from gpulint.lint.linter import lint_text
from gpulint.rule import RuleSet

RULES = RuleSet([rule for rule in all_rules() if rule.code == "GPU301"], confidence=Confidence.LOW)
HEAD = """import torch
from torch import nn
import torch.nn.utils.parametrize as parametrize

loader = torch.utils.data.DataLoader(torch.randn(4096, 512), batch_size=64)
net = nn.Sequential(nn.Linear(512, 4096), nn.ReLU(), nn.Linear(4096, 512)).cuda()
head = nn.Linear(512, 4096).cuda()
opt = torch.optim.Adam([*net.parameters(), *head.parameters()])
"""
PLAIN = """
for x in loader:
    loss = head(net(x.cuda())).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
"""
NEEDED = {
    "a network keeps its last output in an attribute that it names": """
class Keeping(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.last = nn.Linear(512, 512), None
    def forward(self, x):
        out = self.layer(x if self.last is None else x + self.last)
        setattr(self, "last", out)
        return out
keeping = Keeping().cuda()
for x in loader:
    keeping(x.cuda()).mean().backward(retain_graph=True)
""",
    "a hook keeps an output": """
seen = []
net[0].register_forward_hook(lambda module, given, out: seen.append(out))
for x in loader:
    net(x.cuda()).mean().backward(retain_graph=True)
    seen[-1].pow(2).mean().backward()
""",
    "weights are computed once for all forwards": """
with parametrize.cached():
    for x in loader:
        net(x.cuda()).mean().backward(retain_graph=True)
""",
    "a function is handed the next backward": """
for x in loader:
    z = net(x.cuda())
    again = z.pow(2).mean().backward
    z.mean().backward(retain_graph=True)
    again()
""",
    "a lambda goes backward later": """
for x in loader:
    z = net(x.cuda())
    again = lambda: z.pow(2).mean().backward()
    z.mean().backward(retain_graph=True)
    again()
""",
    "a helper is called for two losses of one graph": """
def apply(loss):
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
for x in loader:
    z = net(x.cuda())
    apply(head(z).mean())
    apply(-head(z).mean())
""",
    "a function remembers what it has computed": """
import functools
@functools.lru_cache(None)
def encoded(number):
    return net(torch.full((1, 512), float(number)).cuda())
for i, x in enumerate(loader):
    encoded(i % 2).mean().backward(retain_graph=True)
""",
}


def fixes(text: str, folder: Path) -> list[str]:
    """How safe each fix that is offered is said to be."""
    found = lint_text(HEAD + text, str(folder / "train.py"), RULES)
    return [one.fix.applicability for one in found if one.fix is not None]


def test_a_graph_of_one_round_is_let_go(tmp_path: Path) -> None:
    assert fixes(PLAIN, tmp_path) == ["safe"]


@pytest.mark.parametrize("why", NEEDED)
def test_what_may_be_gone_through_again_is_not_taken_for_needless(why: str, tmp_path: Path) -> None:
    assert "safe" not in fixes(NEEDED[why], tmp_path)
