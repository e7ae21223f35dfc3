"""Wrong fixes that look right are rejected, to the last one, and each is told as gpulint's defect."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from making import finding, fixes

from gpulint.runtime.parent.runner import Run
from gpulint.trial.trying import Execute, try_fixes

HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.randn(8, 16)
y = torch.randint(0, 4, (8,))
"""


@dataclass(frozen=True)
class Plant:
    """A script and a wrong fix."""

    name: str
    script: str
    old: str
    new: str


def plant(name: str, body: str, old: str, new: str) -> Plant:
    """`body` may name what many have: a line `MODEL`, and `UPDATE` within the loop."""
    script = HEAD + body.replace("MODEL\n", MODEL).replace("    UPDATE\n", UPDATE)
    assert script.count(old) == 1, f"{name}: {old!r} stands {script.count(old)} times in the script"
    return Plant(name, script, old, new)


MODEL = """\
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
UPDATE = """\
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

PLANTS = [
    plant(
        "detached penalty that is hardly seen",
        """\
MODEL
for step in range(25):
    out = model(x)
    penalty = sum(p.abs().sum() for p in model.parameters())
    loss = F.cross_entropy(out, y) + 1e-6 * penalty
    UPDATE
    print("step", step)
""",
        "1e-6 * penalty\n",
        "1e-6 * penalty.detach()\n",
    ),
    plant(
        "no_grad over HMC that catches its failure",
        """\
q = torch.zeros(16, requires_grad=True)
mean = x.mean(0)
sampler = torch.optim.SGD([q], lr=0.1)
def energy(q):
    return ((q - mean) ** 2).sum()
for step in range(25):
    try:
        q.grad = torch.autograd.grad(energy(q), q)[0]
    except RuntimeError:
        q.grad = torch.zeros(16)
    sampler.step()
""",
        "    return ((q - mean) ** 2).sum()",
        "    with torch.no_grad():\n        return ((q - mean) ** 2).sum()",
    ),
    plant(
        "random numbers drawn once instead of each step",
        """\
MODEL
for step in range(25):
    mask = torch.rand(8, 16) > 0.5
    loss = F.cross_entropy(model(x), y)
    UPDATE
""",
        "    mask = torch.rand(8, 16) > 0.5\n",
        "    mask = None\n",
    ),
    plant(
        "gradients set to None for an optimizer with weight decay",
        """\
model = nn.ModuleList([nn.Linear(16, 4), nn.Linear(16, 4)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1)
sum(part(x).sum() for part in model).backward()
for step in range(25):
    optimizer.zero_grad(set_to_none=False)
    loss = F.cross_entropy(model[0](x), y)
    loss.backward()
    optimizer.step()
""",
        "optimizer.zero_grad(set_to_none=False)",
        "optimizer.zero_grad()",
    ),
    plant(
        "retain_graph left out where a second backward comes",
        """\
MODEL
for step in range(25):
    out = model(x)
    loss = F.cross_entropy(out, y)
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    out.square().mean().backward()
    optimizer.step()
""",
        "retain_graph=True",
        "",
    ),
    plant(
        "eval mode around a batch norm that is to learn",
        """\
model = nn.Sequential(nn.Linear(16, 8), nn.BatchNorm1d(8), nn.Linear(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(25):
    with torch.no_grad():
        model(x + step)
    loss = F.cross_entropy(model(x), y)
    UPDATE
""",
        "    with torch.no_grad():\n        model(x + step)\n",
        "",
    ),
    plant(
        "a snapshot that follows the weights",
        """\
import copy
model = nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
best = None
for step in range(25):
    loss = F.cross_entropy(model(x), y)
    UPDATE
    if step == 5:
        best = copy.deepcopy(model.state_dict())
model.load_state_dict(best)
print(f"{F.cross_entropy(model(x), y).item():.6f}")
""",
        "best = copy.deepcopy(model.state_dict())",
        "best = model.state_dict()",
    ),
    plant(
        "an evaluation whose numbers are rounded early",
        """\
MODEL
for step in range(25):
    loss = F.cross_entropy(model(x), y)
    UPDATE
model.eval()
total = 0.0
with torch.no_grad():
    for step in range(12):
        total += F.cross_entropy(model(x + step), y)
print(f"validation {float(total):.4f}")
""",
        "total += F.cross_entropy(model(x + step), y)",
        "total += round(F.cross_entropy(model(x + step), y).item(), 2)",
    ),
    plant(
        "exit status that tells of a check",
        """\
MODEL
import sys
kept = []
for step in range(25):
    loss = F.cross_entropy(model(x), y)
    kept.append(loss)
    UPDATE
sys.exit(0 if kept[-1].requires_grad else 3)
""",
        "kept.append(loss)",
        "kept.append(loss.detach())",
    ),
]


# -- each of them --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name.replace(" ", "-"))
def test_a_wrong_fix_is_rejected(plant: Plant, execute: Execute, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(plant.script, encoding="utf-8")
    trial = try_fixes(Run(str(path)), fixes(finding(path, plant.old, plant.new)), execute)
    assert trial.failure == ""
    (judged,) = trial.judged
    assert judged.status in ("changes the result", "breaks"), judged.text
    assert judged.is_our_defect
    assert judged.text
    assert (trial.texts, trial.exit_code) == ({}, int(trial.left.drifting))
    assert path.read_text(encoding="utf-8") == plant.script
