import torch
from torch import nn


class Student(nn.Module):
    def __init__(self, cfg, build):
        super().__init__()
        body = build(cfg)
        if cfg.weights:
            start = torch.load(cfg.weights)  # low: GPU403
            body.load_state_dict(start["model"], strict=False)
        self.parts = nn.ModuleDict({"body": body})

    def step(self, crops):
        crops = crops["global"].cuda(non_blocking=True)
        return self.parts["body"](crops).mean()
