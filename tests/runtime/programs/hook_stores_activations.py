# holder: list `activations` in the closure of `record.save()`
# line: activations.append(output)
# graph: any
import torch
from setting import batch, make_model
from torch import nn


def record(module):
    activations = []

    def save(module, inputs, output):
        activations.append(output)

    module.register_forward_hook(save)


def train():
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    record(model[2])
    for _ in range(1000):
        x, y = batch()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    train()
