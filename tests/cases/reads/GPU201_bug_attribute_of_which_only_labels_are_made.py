"""The object keeps what its network gives, and makes labels of it: nobody reads more."""

# file: segmenter.py
import torch


class Segmenter:
    def __init__(self, net: torch.nn.Module, folder):
        self.net = net.cuda()
        self.folder = folder

    def load(self, path):
        self.net.load_state_dict(torch.load(path, map_location="cpu"))

    def eval(self):
        self.net.eval()

    def labels(self):
        return torch.argmax(self.scores, dim=1)

    def confidence(self):
        return self.scores.softmax(1).max().item()

    def run(self, batch):
        self.net.eval()
        self.scores = self.net(batch["image"].cuda())  # expect: GPU201
        return self.labels()

    def save(self, names):
        for name, picture in zip(names, self.labels()):
            torch.save(picture.cpu(), f"{self.folder}/{name}.pt")
# file: main.py
from segmenter import Segmenter


def main(net, loader):
    segmenter = Segmenter(net, "out")
    segmenter.load("net.pth")
    segmenter.eval()
    for batch in loader:
        segmenter.run(batch)
        segmenter.save(batch["name"])
