"""Fixes that are wrong, each with a script in which it looks right: what a linter that guesses would offer.

A plant is a script, what the fix takes out of it, and what it puts there. All would save memory or time if they were right.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    """A script and a wrong fix. `hides` says that the script would not fail for it."""

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
        "item() of an auxiliary loss",
        """\
MODEL
head = nn.Linear(4, 1)
optimizer.add_param_group({"params": head.parameters()})
for step in range(25):
    out = model(x)
    losses = [F.cross_entropy(out, y)]
    losses.append(head(out).square().mean())
    optimizer.zero_grad()
    sum(losses).backward()
    optimizer.step()
""",
        "losses.append(head(out).square().mean())",
        "losses.append(head(out).square().mean().item())",
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
        "MAML without second order",
        """\
w = nn.Parameter(torch.randn(16, 4) * 0.1)
meta = torch.optim.SGD([w], lr=0.1)
for step in range(25):
    inner = F.cross_entropy(x @ w, y)
    grad = torch.autograd.grad(inner, w, create_graph=True)[0]
    fast = w - 0.5 * grad
    loss = F.cross_entropy(x @ fast, y)
    meta.zero_grad()
    loss.backward()
    meta.step()
""",
        "fast = w - 0.5 * grad",
        "fast = w - 0.5 * grad.detach()",
    ),
    plant(
        "closure that returns a number",
        """\
model = nn.Linear(16, 4)
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3, line_search_fn="strong_wolfe")
def closure():
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    return loss
for step in range(25):
    optimizer.step(closure)
""",
        "    loss.backward()\n    return loss",
        "    loss.backward()\n    return round(loss.item(), 3)",
    ),
    plant(
        "checkpointing that does not keep the random numbers",
        """\
from torch.utils.checkpoint import checkpoint
first = nn.Sequential(nn.Linear(16, 32), nn.Dropout(0.5))
last = nn.Linear(32, 4)
optimizer = torch.optim.SGD([*first.parameters(), *last.parameters()], lr=0.1)
for step in range(25):
    hidden = first(x)
    loss = F.cross_entropy(last(hidden), y)
    UPDATE
""",
        "hidden = first(x)",
        "hidden = checkpoint(first, x, use_reentrant=False, preserve_rng_state=False)",
    ),
    plant(
        "dropout with a generator of its own",
        """\
MODEL
noise = torch.Generator().manual_seed(7)
for step in range(25):
    keep = (torch.rand(8, 16, generator=noise) > 0.5).float()
    loss = F.cross_entropy(model(x * keep), y)
    UPDATE
""",
        "torch.rand(8, 16, generator=noise)",
        "torch.rand(8, 16)",
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
        "autocast over what was computed in full precision",
        """\
MODEL
for step in range(25):
    loss = F.cross_entropy(model(x), y)
    UPDATE
""",
        "    loss = F.cross_entropy(model(x), y)",
        "    with torch.autocast('cpu', dtype=torch.bfloat16):\n        out = model(x)\n    loss = F.cross_entropy(out.float(), y)",
    ),
    plant(
        "gradients scaled and never unscaled",
        """\
MODEL
for step in range(25):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
""",
        "    loss.backward()\n",
        "    loss.backward()\n    [p.grad.mul_(1024) for p in model.parameters()]\n",
    ),
    plant(
        "zero_grad left out",
        """\
MODEL
for step in range(25):
    loss = F.cross_entropy(model(x), y)
    UPDATE
""",
        "    optimizer.zero_grad()\n",
        "",
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
        "buffers that are no longer averaged",
        """\
import copy
model = nn.Linear(16, 4)
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(25):
    target = average(x).detach()
    loss = F.mse_loss(model(x), target + 1)
    UPDATE
    for a, p in zip(average.parameters(), model.parameters()):
        a.copy_(0.9 * a + 0.1 * p.detach())
""",
        "a.copy_(0.9 * a + 0.1 * p.detach())",
        "a = 0.9 * a + 0.1 * p.detach()",
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
        "a model deleted that is used once more",
        """\
MODEL
for step in range(25):
    loss = F.cross_entropy(model(x), y)
    UPDATE
print(model(x).argmax(1).tolist())
""",
        "print(model(x)",
        "del model\nprint(model(x)",
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
