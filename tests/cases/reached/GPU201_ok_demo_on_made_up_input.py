"""A network's file that tries it out at its end, round after round, on tensors that it makes up."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class Gate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        return torch.sigmoid(self.mix(x))


def smoke(rounds=3):
    gate = Gate(32).to(device)
    gate.eval()
    for _ in range(rounds):
        print(gate(torch.ones(4, 32, device=device)).mean().item())


if __name__ == "__main__":
    gate = Gate(64).to(device)
    for _ in range(5):
        batch = torch.rand(8, 64).to(device)
        print(gate(batch).argmax(-1))
    gate = gate.eval()
    total = 0
    for _ in range(5):
        total += gate(torch.rand(8, 64, device=device)).sum().item()
    smoke()
