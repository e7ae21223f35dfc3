import torch
from torch import nn


class TGN(nn.Module):
    def __init__(self, memory, encoder):
        super().__init__()
        self.memory = memory
        self.encoder = encoder

    def forward(self, src, dst, t):
        z = self.memory(src, dst, t)
        return self.encoder(z, src, dst)


def train(model: TGN, loader, opt, device):
    model.train()
    model.memory.reset_state()
    total = 0.0
    for ev in loader:
        ev = ev.to(device)
        opt.zero_grad()
        pos = model(ev.src, ev.dst, ev.t)
        neg = model(ev.src, ev.neg_dst, ev.t)
        loss = nn.functional.softplus(-pos).mean() + nn.functional.softplus(neg).mean()
        model.memory.update_state(ev.src, ev.dst, ev.t)
        loss.backward()
        opt.step()
        model.memory.detach()
        total += float(loss) * ev.num_events
    return total
