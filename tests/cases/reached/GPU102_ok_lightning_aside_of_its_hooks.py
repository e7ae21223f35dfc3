"""Called after `trainer.fit`, which takes the module back to the host when it is done."""

import lightning as L
import torch
from torch import nn


class Towers(L.LightningModule):
    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net

    def training_step(self, batch, index):
        return self.net(batch).mean()

    def vectors(self, loader):
        self.eval()
        found = []
        for batch in loader:
            with torch.no_grad():
                found.append(self.net(batch.to(self.device)))
        return torch.cat(found).cpu().numpy()


def run(net, loader):
    towers = Towers(net)
    L.Trainer(max_epochs=3).fit(towers, loader)
    return towers.vectors(loader)
