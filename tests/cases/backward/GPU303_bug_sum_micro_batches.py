import torch
import torch.nn.functional as F


def train(model, loader, opt, n_micro, device):
    for batch, target in loader:
        xs = batch.to(device).chunk(n_micro)
        ys = target.to(device).chunk(n_micro)
        opt.zero_grad()
        loss = 0
        for x, y in zip(xs, ys):
            loss += F.cross_entropy(model(x), y) / n_micro  # expect: GPU303
        loss.backward()
        opt.step()
