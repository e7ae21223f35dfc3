"""Small training scripts for tests of the command."""

LEAKING = """
import sys
import torch
from torch import nn

def train(steps):
    print("argv", sys.argv[1:], flush=True)
    model = nn.Linear(64, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for _ in range(steps):
        out = model(torch.randn(16, 64))
        loss = out.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    print(len(losses))

if __name__ == "__main__":
    train(400)
"""

CLEAN = LEAKING.replace("losses.append(loss)", "losses.append(loss.item())")

# What it keeps is put into a global by a helper; with GPU1 ignored nothing predicts it.
SURPRISING = """
import torch
from torch import nn

KEPT = {}

def remember(step, value):
    KEPT[step] = value.clone()

model = nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(400):
    out = model(torch.randn(16, 64))
    loss = out.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        remember(step, out.detach())
"""


# Nothing in it says that a GPU is used: the linter alone is not sure of the GPU201 in row 8.
DOUBTFUL = """
import torch
from torch import nn


def label(network: nn.Module, features):
    network.eval()
    return network(features).argmax(-1).tolist()
"""

LABELLING = """
import torch
from labels import label
from torch import nn

network = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64))
for _ in range(400):
    label(network, torch.randn(16, 64))
"""

# Which class the network has, and in which mode it runs, the linter cannot see.
SCORING = """
import torch

network = eval("torch.nn.Sequential(*[torch.nn.Linear(a, b) for a, b in ((64, 512), (512, 512), (512, 8))]).eval()")
for _ in range(400):
    scores = network(torch.randn(64, 64))
"""

# Validation in every epoch, of which the outputs are kept.
VALIDATING = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(64, 32), torch.randint(0, 4, (64,)))
training, validation = DataLoader(data, batch_size=8), DataLoader(data, batch_size=8)
model = nn.Linear(32, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
outputs = []
for epoch in range(1000):
    model.train()
    for x, y in training:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for x, y in validation:
            outputs.append(model(x))
"""

# Grows by what is no drift: a history with a limit.
BOUNDED = (
    SURPRISING.replace("KEPT = {}", "import collections\nrecent = collections.deque(maxlen=100)")
    .replace("randn(16", "randn(64")
    .replace("remember(step, out.detach())", "recent.append(out.clone())")
)

# Two statements on one line, each with a list of its own; both are GPU101.
ABREAST = LEAKING.replace("losses = []", "losses, outs = [], []").replace(
    "losses.append(loss)", "losses.append(loss); outs.append(out)"
)

ASKING = """
answer = input("Really train? [y/N] ")
print("answered", answer)
import torch
"""

# Raises below a call that the watchers see, and says so with a second exception.
MISSHAPEN = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 5)

    def forward(self, x):
        try:
            return self.layer(x)
        except RuntimeError as error:
            raise ValueError("a batch of another width") from error

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(9):
    model(torch.randn(2, 4 if step < 6 else 7)).sum().backward()
    optimizer.step()
"""

# Four micro-batches a step. The evaluation keeps what it makes, so that the run is highest at its end, which is not sampled.
ACCUMULATING = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(26):
    for part in range(4):
        loss = model(torch.randn(256, 64)).pow(2).mean() / 4
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
model.eval()
kept = []
with torch.no_grad():
    for batch in range(60):
        kept.append(model(torch.randn(256, 64)))
"""
