# LBFGS keeps a history of up to 100 directions, and calls the model many times a step.
# status: bounded
import torch
from setting import batch, make_model
from torch import nn

model = make_model()
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=2)
x, y = batch()


def closure():
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    return loss


for _ in range(1000):
    optimizer.step(closure)
