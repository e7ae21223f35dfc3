import torch
from torch import nn


def train(lstm, head, frames, opt, dev):
    h = torch.zeros(2, 16, 512, device=dev)
    c = torch.zeros(2, 16, 512, device=dev)
    for x, y in frames:
        out, (h, c) = lstm(x.to(dev), (h, c))  # expect: GPU103
        loss = nn.functional.cross_entropy(head(out[:, -1]), y.to(dev))
        opt.zero_grad()
        loss.backward(retain_graph=True)  # maybe: GPU301
        opt.step()
        h = h.detach()
        print(loss.item())
