"""A look at the result: once when the script starts, which hardly matters, or as often as its caller steps."""

import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4096, 2048)

    def forward(self, x):
        return self.fc(x)


policy = Policy().cuda()


def main():
    words = torch.load("words.pt").cuda()
    print(policy(words).argmax(-1).tolist())  # low: GPU201


def answer(state):
    return policy(torch.as_tensor(state).cuda()).argmax(-1).item()  # expect: GPU201


if __name__ == "__main__":
    main()
    for state in torch.load("states.pt"):
        print(answer(state))
