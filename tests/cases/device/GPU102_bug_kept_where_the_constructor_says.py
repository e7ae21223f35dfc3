"""The program leaves the constructor's device at its default, which is the GPU; the bank is only ever saved."""
# file: bank.py
import torch


class Bank:
    def __init__(self, net: torch.nn.Module, storage_device="cuda"):
        self.net = net.to("cuda").eval()
        self.storage_device = torch.device(storage_device)
        self.keys = []

    @torch.no_grad()
    def fill(self, loader):
        for x in loader:
            patches = self.net(x.to("cuda")).flatten(2).transpose(1, 2)
            self.keys.append(patches.to(self.storage_device))  # low: GPU102

    def save(self, path):
        torch.save(torch.cat(self.keys).cpu(), path)
# file: main.py
from torchvision.models import resnet50

from bank import Bank


def main(loader):
    bank = Bank(resnet50(weights="DEFAULT"))
    bank.fill(loader)
    bank.save("bank.pt")
