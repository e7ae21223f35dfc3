"""Each pass builds a model and its optimizer, takes one step and clears up before the next: a run, not a step."""
import torch
from torch import nn

from zoo import build


def one_step(make, config, batch):
    model, optimizer, criterion = build(make, config)
    optimizer.zero_grad()
    loss = criterion(model(batch))
    loss.backward()
    optimizer.step()
    print(loss.item())
    torch.cuda.empty_cache()


def small(width, batch):
    model = nn.Linear(width, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = model(batch).mean()
    loss.backward()
    optimizer.step()


def all_models(makers, config, batch):
    for make in makers:
        one_step(make, config, batch)
    for width in config.widths:
        small(width, batch)
        torch.cuda.empty_cache()
