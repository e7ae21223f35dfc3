import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Deep(nn.Module):
    def __init__(self, width=1024, depth=24):
        super().__init__()
        self.layers = nn.ModuleList([nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(depth)])
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return self.head(x)


def main(loader):
    net = Deep().cuda()
    optim = torch.optim.AdamW(net.parameters())
    log = {"train": [], "lr": []}
    for x, y in loader:
        l = nn.functional.huber_loss(net(x.cuda()).squeeze(-1), y.cuda())
        l.backward()
        optim.step()
        optim.zero_grad()
        log["train"].append(l)  # expect: GPU101
        log["lr"].append(optim.param_groups[0]["lr"])
    return log
