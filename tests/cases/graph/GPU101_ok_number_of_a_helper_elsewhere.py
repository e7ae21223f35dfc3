"""The helper in another file trains on the loss and returns a number: what is added up here has no graph."""
# file: train.py
import torch

from steps import train_step


def main(loader):
    model = torch.nn.Linear(512, 512).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history, total = [], 0.0
    for batch in loader:
        loss = train_step(model, optimizer, batch)
        history.append(loss)
        total += loss
    print(total / len(history))
# file: steps.py
import torch.nn.functional as F


def train_step(model, optimizer, batch):
    inputs, targets = batch
    optimizer.zero_grad()
    loss = F.mse_loss(model(inputs.cuda()), targets.cuda())
    loss.backward()
    optimizer.step()
    return loss.item()
