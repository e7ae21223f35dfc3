"""The same with the checkpoint let go of before a trainer of a library begins."""

import torch
from lightning import Trainer
from torch import nn


def let_go_of(path, loader):
    net = nn.Transformer(1024, 16, 12, 12).cuda()
    loaded = torch.load(path)["model"]  # low: GPU403
    net.load_state_dict(loaded)
    del loaded
    trainer = Trainer(max_epochs=10)
    trainer.fit(net, loader)
