"""What the programs train, and on what."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_model(width=64):
    return nn.Sequential(
        nn.Linear(32, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4)
    ).to(device)


def batch():
    return torch.randn(16, 32).to(device), torch.randint(0, 4, (16,)).to(device)


def encoder_and_head():
    encoder = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64)).to(device)
    head = nn.Linear(64, 4).to(device)
    return encoder, head, torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=1e-3)


def training():
    model = make_model()
    return model, torch.optim.Adam(model.parameters(), lr=1e-3)


def learnt(model, optimizer):
    """One step: its input, its output, and its loss, of which the graph has been freed."""
    x, y = batch()
    out = model(x)
    loss = nn.functional.cross_entropy(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return x, out, loss


def learn(model, optimizer):
    """One step; its loss."""
    return learnt(model, optimizer)[-1]


class Squares(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.randn(32, generator=generator), index % 4


def train_on_squares(context):
    """With two workers, started as `context` says."""
    model, optimizer = training()
    for x, y in DataLoader(Squares(), batch_size=16, num_workers=2, multiprocessing_context=context):
        last = x
        x, y = x.to(device), y.to(device)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return last


def train_some(model, optimizer, steps=3):
    model.train()
    for _ in range(steps):
        learn(model, optimizer)
