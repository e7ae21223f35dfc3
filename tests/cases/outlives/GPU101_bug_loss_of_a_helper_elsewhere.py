"""A helper in another file makes the loss and returns it as it is; who adds it up stands here."""
# file: train.py
import torch

from losses import batch_loss


def evaluate(model: torch.nn.Module, loader):
    model.eval()
    total = 0.0
    for batch in loader:
        total += batch_loss(model, batch)  # expect: GPU101, GPU201
    return total / len(loader)


def main(loader, held_out):
    model = torch.nn.Linear(512, 512).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history = []
    for batch in loader:
        optimizer.zero_grad()
        loss = batch_loss(model, batch)
        loss.backward()
        optimizer.step()
        history.append(loss)  # expect: GPU101
    print(evaluate(model, held_out), history[-1])
# file: losses.py
import torch.nn.functional as F


def batch_loss(model, batch):
    inputs, targets = batch
    return F.mse_loss(model(inputs.cuda()), targets.cuda())
