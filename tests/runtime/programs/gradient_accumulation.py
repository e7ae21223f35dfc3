# Four backward passes for one optimizer step.
# forwards-per-step: 4
import torch
from setting import batch, make_model
from torch import nn


def train():
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for i in range(4000):
        x, y = batch()
        loss = nn.functional.cross_entropy(model(x), y) / 4
        loss.backward()
        if (i + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)


if __name__ == "__main__":
    train()
