import torch
from torch import nn


class MoCoQueue(nn.Module):
    """A ring of fixed size on the GPU: it is written in place and never grows."""

    def __init__(self, dim, size=65536):
        super().__init__()
        self.register_buffer("queue", nn.functional.normalize(torch.randn(dim, size), dim=0))
        self.ptr = 0

    @torch.no_grad()
    def enqueue(self, keys):
        b = keys.size(0)
        self.queue[:, self.ptr : self.ptr + b] = keys.t()
        self.ptr = (self.ptr + b) % self.queue.size(1)


def train(q_enc, k_enc, queue, loader, opt):
    for a, b in loader:
        with torch.no_grad():
            k = nn.functional.normalize(k_enc(b.cuda()))
        q = nn.functional.normalize(q_enc(a.cuda()))
        logits = torch.cat([(q * k).sum(1, keepdim=True), q @ queue.queue.clone()], 1) / 0.07
        loss = nn.functional.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long, device="cuda"))
        opt.zero_grad()
        loss.backward()
        opt.step()
        queue.enqueue(k)
