import torch
from torch import nn


class Saver:
    def __init__(self, net: nn.Module, opt, path):
        self.net, self.opt, self.path = net.cuda(), opt, path

    def restore(self, rank):
        state = torch.load(self.path, map_location=f"cuda:{rank}")  # low: GPU403
        self.net.load_state_dict(state["net"])
        self.opt.load_state_dict(state["opt"])
        return state["step"]

    def restore_best(self):
        self.net.load_state_dict(torch.load("best.pt"))  # low: GPU403
