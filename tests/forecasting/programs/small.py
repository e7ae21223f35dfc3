"""Trains a small network, evaluates it and saves it, epoch by epoch, with loaders that have workers."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--out", default="")
    args = parser.parse_args()
    device = torch.device("cuda")
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 10)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    data = TensorDataset(torch.randn(6400, 512), torch.randint(0, 10, (6400,)))
    loader = DataLoader(data, args.batch_size, num_workers=2, pin_memory=True)
    for _ in range(1000):
        model.train()
        for inputs, labels in loader:
            loss = nn.functional.cross_entropy(model(inputs.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for inputs, _ in loader:
                model(inputs.cuda())
        if args.out:
            torch.save(model.state_dict(), args.out)


if __name__ == "__main__":
    main()
