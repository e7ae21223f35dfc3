"""A word-level LSTM with carried state, truncated backpropagation through time, and clipped gradients."""

import argparse

import torch
from torch import nn


class Words(nn.Module):
    def __init__(self, words: int = 33278, width: int = 650, layers: int = 2) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.drop = nn.Dropout(0.5)
        self.lstm = nn.LSTM(width, width, layers, dropout=0.5)
        self.out = nn.Linear(width, words)

    def forward(self, tokens: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor] | None) -> tuple:
        output, state = self.lstm(self.drop(self.embed(tokens)), state)
        return self.out(self.drop(output)), state


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=8)
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    text = torch.randint(0, 33278, (args.steps * 35 + 1, args.batch)).to(device)
    model = Words().to(device)
    criterion = nn.CrossEntropyLoss()
    state = None
    for step in range(args.steps):
        tokens = text[step * 35 : (step + 1) * 35]
        targets = text[step * 35 + 1 : (step + 1) * 35 + 1].reshape(-1)
        if state is not None:
            state = tuple(part.detach() for part in state)
        model.zero_grad()
        output, state = model(tokens, state)
        loss = criterion(output.view(-1, 33278), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        with torch.no_grad():
            for weight in model.parameters():
                weight.add_(weight.grad, alpha=-20.0)
        print(step, loss.item())


if __name__ == "__main__":
    main()
