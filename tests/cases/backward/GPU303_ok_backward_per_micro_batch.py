import torch
import torch.nn.functional as F


def train(model, loader, opt, n_micro, device):
    for batch, target in loader:
        opt.zero_grad()
        total = 0.0
        for x, y in zip(batch.chunk(n_micro), target.chunk(n_micro)):
            loss = F.cross_entropy(model(x.to(device)), y.to(device)) / n_micro
            loss.backward()
            total += loss.item()
        opt.step()
        print(total)
