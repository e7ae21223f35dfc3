"""A graph network on batches of molecules: messages by index_add and scatter_reduce, graphs of varying sizes, a plateau schedule."""

import argparse
import random

import torch
from torch import nn
from torch.utils.data import DataLoader


def molecules(count: int, seed: int):
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        atoms = chance.randrange(9, 38)
        pairs = [(atom, chance.randrange(atom)) for atom in range(1, atoms)]
        pairs += [(chance.randrange(atoms), chance.randrange(atoms)) for _ in range(atoms // 3)]
        edges = torch.tensor(pairs + [(b, a) for a, b in pairs]).t()
        kinds = torch.tensor([chance.randrange(28) for _ in range(atoms)])
        bonds = torch.tensor([chance.randrange(4) for _ in range(edges.shape[1])])
        found.append((kinds, edges, bonds, chance.random()))
    return found


def collate(graphs):
    starts = [0]
    for kinds, *_ in graphs:
        starts.append(starts[-1] + len(kinds))
    kinds = torch.cat([graph[0] for graph in graphs])
    edges = torch.cat([graph[1] + start for graph, start in zip(graphs, starts, strict=False)], dim=1)
    bonds = torch.cat([graph[2] for graph in graphs])
    owner = torch.repeat_interleave(
        torch.arange(len(graphs)), torch.tensor([len(graph[0]) for graph in graphs])
    )
    return kinds, edges, bonds, owner, torch.tensor([graph[3] for graph in graphs])


class Layer(nn.Module):
    """Messages of the neighbours: their sum, mean and maximum."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.message = nn.Sequential(nn.Linear(width * 3, width), nn.ReLU(), nn.Linear(width, width))
        self.update = nn.Sequential(nn.Linear(width * 4, width * 2), nn.ReLU(), nn.Linear(width * 2, width))
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x: torch.Tensor, edges: torch.Tensor, bonds: torch.Tensor) -> torch.Tensor:
        source, target = edges
        messages = self.message(torch.cat([x[source], x[target], bonds], dim=1))
        total = torch.zeros_like(x).index_add_(0, target, messages)
        degree = torch.bincount(target, minlength=x.size(0)).clamp(min=1).unsqueeze(1)
        largest = torch.zeros_like(x).scatter_reduce(
            0, target[:, None].expand_as(messages), messages, reduce="amax", include_self=False
        )
        return x + torch.relu(self.norm(self.update(torch.cat([x, total, total / degree, largest], dim=1))))


class Network(nn.Module):
    def __init__(self, width: int = 256, depth: int = 8) -> None:
        super().__init__()
        self.atom = nn.Embedding(28, width)
        self.bond = nn.Embedding(4, width)
        self.layers = nn.ModuleList([Layer(width) for _ in range(depth)])
        self.gate = nn.Linear(width, 1)
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, 1))

    def forward(self, kinds, edges, bonds, owner, graphs: int) -> torch.Tensor:
        x, bonds = self.atom(kinds), self.bond(bonds)
        for layer in self.layers:
            x = layer(x, edges, bonds)
        weighted = torch.sigmoid(self.gate(x)) * x
        pooled = torch.zeros(graphs, x.size(1), device=x.device).index_add(0, owner, weighted)
        return self.head(pooled).squeeze(1)


def run(model, loader, device, optimizer=None) -> float:
    model.train(optimizer is not None)
    error = 0.0
    with torch.set_grad_enabled(optimizer is not None):
        for kinds, edges, bonds, owner, truth in loader:
            kinds, edges, bonds = kinds.to(device), edges.to(device), bonds.to(device)
            owner, truth = owner.to(device), truth.to(device)
            loss = nn.functional.l1_loss(model(kinds, edges, bonds, owner, len(truth)), truth)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            error += loss.item() * len(truth)
    return error / len(loader.dataset)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda")
    data = molecules(args.batch * 2, 0)
    train = DataLoader(data, args.batch // 2, shuffle=True, collate_fn=collate)
    test = DataLoader(data[: args.batch], args.batch, collate_fn=collate)
    model = Network().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=5)
    for epoch in range(args.epochs):
        loss = run(model, train, device, optimizer)
        error = run(model, test, device)
        schedule.step(error)
        print(epoch, loss, error)


if __name__ == "__main__":
    main()
