"""A small ConvNet that is trained, evaluated and saved after every epoch, as tutorials do."""

import argparse
import os
import tempfile

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, width: int = 96) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        inputs = 3
        for scale in (1, 2, 4):
            outputs = width * scale
            for _ in range(2):
                parts += [
                    nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
                    nn.BatchNorm2d(outputs),
                    nn.ReLU(inplace=True),
                ]
                inputs = outputs
            parts.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*parts)
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Linear(inputs * 16, 512), nn.ReLU(), nn.Dropout(), nn.Linear(512, 10)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.features(x))


def evaluate(model: nn.Module, loader: DataLoader, device: torch.device) -> float:
    model.eval()
    losses, right = 0.0, 0
    with torch.no_grad():
        for inputs, labels in loader:
            inputs, labels = inputs.to(device), labels.to(device)
            output = model(inputs)
            losses += F.cross_entropy(output, labels, reduction="sum").item()
            right += (
                output.argmax(dim=1, keepdim=True)
                .eq(labels.view_as(output.argmax(dim=1, keepdim=True)))
                .sum()
                .item()
            )
    return losses / len(loader)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    device = torch.device("cuda")
    train = TensorDataset(torch.randn(args.batch * 3, 3, 32, 32), torch.randint(0, 10, (args.batch * 3,)))
    test = TensorDataset(torch.randn(args.batch * 4, 3, 32, 32), torch.randint(0, 10, (args.batch * 4,)))
    model = Net().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    best = float("inf")
    folder = tempfile.mkdtemp()
    for epoch in range(args.epochs):
        model.train()
        for inputs, labels in DataLoader(train, batch_size=args.batch, shuffle=True, drop_last=True):
            inputs, labels = inputs.to(device), labels.to(device)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
        current = evaluate(model, DataLoader(test, batch_size=args.batch * 2), device)
        if current <= best:
            best = current
            torch.save(
                {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch},
                os.path.join(folder, "best.pt"),
            )
        print(epoch, loss.item(), current)


if __name__ == "__main__":
    main()
