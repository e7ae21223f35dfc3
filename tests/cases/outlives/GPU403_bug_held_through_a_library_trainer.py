"""A trainer of a library goes through all epochs while a name holds the checkpoint."""

import torch
from lightning import Trainer
from torch import nn


def main(path, loader):
    net = nn.Transformer(1024, 16, 12, 12).cuda()
    loaded = torch.load(path)["model"]  # expect: GPU403
    net.load_state_dict(loaded)
    trainer = Trainer(max_epochs=10)
    trainer.fit(net, loader)
