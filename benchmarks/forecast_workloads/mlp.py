"""A multilayer perceptron with SGD and momentum, on a loader, validated after every epoch."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(args.batch * 4, 1024), torch.randint(0, 100, (args.batch * 4,)))
    loader = DataLoader(data, batch_size=args.batch, shuffle=True)
    layers: list[nn.Module] = []
    for inputs, outputs in ((1024, 4096), (4096, 4096), (4096, 4096), (4096, 2048)):
        layers += [nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU(), nn.Dropout(0.2)]
    model = nn.Sequential(*layers, nn.Linear(2048, 100)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    criterion = nn.CrossEntropyLoss()
    for _ in range(args.epochs):
        model.train()
        for inputs, labels in loader:
            inputs, labels = inputs.to(device), labels.to(device)
            optimizer.zero_grad()
            loss = criterion(model(inputs), labels)
            loss.backward()
            optimizer.step()
        model.eval()
        right = 0
        with torch.no_grad():
            for inputs, labels in loader:
                outputs = model(inputs.to(device))
                right += (outputs.argmax(1) == labels.to(device)).sum().item()
        print(right / len(data), loss.item())


if __name__ == "__main__":
    main()
