"""A context class of another file: evaluation mode, and grad off, both put back at its end."""
# file: measure.py
import torch

from modes import evaluating


def psnr(net: torch.nn.Module, loader):
    net.to("cuda")
    total = 0.0
    with evaluating(net):
        for noisy, clean in loader:
            error = (net(noisy.to("cuda")) - clean.to("cuda")).pow(2).mean()
            total += -10 * error.log10().item()
    return total / len(loader)
# file: modes.py
import torch


class evaluating:
    def __init__(self, net):
        self.net = net

    def __enter__(self):
        self.training, self.grad = self.net.training, torch.is_grad_enabled()
        self.net.eval()
        torch.set_grad_enabled(False)
        return self.net

    def __exit__(self, *problem):
        self.net.train(self.training)
        torch.set_grad_enabled(self.grad)
