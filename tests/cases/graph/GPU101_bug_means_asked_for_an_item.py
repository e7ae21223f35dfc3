import torch
import torch.nn.functional as F
from torch import nn


def fit(model, loader):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    losses, energies = [], []
    for x, y in loader:
        out = model(x)
        loss = F.mse_loss(out, torch.zeros_like(out))
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss)  # expect: GPU101
        energies.append(out.mean())  # expect: GPU101
    print("loss {:.4f}, energy {:.4f}".format((sum(losses) / len(losses)).item(), max(energies).item()))


def fit_and_name_the_mean(model, loader):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    total = 0
    for x, y in loader:
        out = model(x)
        loss = F.mse_loss(out, torch.zeros_like(out))
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss  # expect: GPU101
    mean = total / len(loader)
    print(f"{torch.sqrt(mean).cpu():.3f}")


def fit_by_task(model, loader):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    history = {"task": []}
    for x, y in loader:
        out = model(x)
        loss = F.mse_loss(out, torch.zeros_like(out))
        opt.zero_grad()
        loss.backward()
        opt.step()
        history["task"].append(loss)  # expect: GPU101
    for name, values in history.items():
        print(name, (sum(values) / len(values)).item())


def fit_each_sample(model, loader):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.MSELoss(reduction="none")
    losses = []
    for x, y in loader:
        out = model(x)
        loss = criterion(out, torch.zeros_like(out))
        opt.zero_grad()
        loss.mean().backward()
        opt.step()
        losses.append(loss)  # note: GPU101
    print(len(losses), losses)
