"""A context class of another file: evaluation mode, put back at its end, and nothing about grad."""
# file: measure.py
import torch

from modes import evaluating


def psnr(net: torch.nn.Module, loader):
    net.to("cuda")
    total = 0.0
    with evaluating(net):
        for noisy, clean in loader:
            error = (net(noisy.to("cuda")) - clean.to("cuda")).pow(2).mean()  # expect: GPU201
            total += -10 * error.log10().item()
    return total / len(loader)
# file: modes.py
import torch


class evaluating:
    def __init__(self, net):
        self.net = net

    def __enter__(self):
        self.training, self.state = self.net.training, torch.get_rng_state()
        self.net.eval()
        torch.manual_seed(0)
        return self.net

    def __exit__(self, *problem):
        self.net.train(self.training)
        torch.set_rng_state(self.state)
