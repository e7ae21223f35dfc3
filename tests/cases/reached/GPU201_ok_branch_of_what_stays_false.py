"""A constructor switches something off, and nothing in the program ever switches it on: what it would do is never done."""
# file: runner.py
import torch
from torchvision.models import resnet50


class Runner:
    def __init__(self):
        self.resumes = False
        self.net = resnet50().cuda()

    def start(self, loader):
        if self.resumes:
            self.look(loader)

    def look(self, loader):
        self.net.eval()
        for images, labels in loader:
            print((self.net(images.cuda()).argmax(1) == labels.cuda()).sum().item())


if __name__ == "__main__":
    runner = Runner()
    runner.start(torch.load("batches.pt"))
# file: other.py
import torch


class Runner:
    """Another one of that name."""

    def __init__(self):
        self.resumes = True

    def start(self):
        self.take_up()

    def take_up(self):
        print("nothing to take up")


if __name__ == "__main__":
    Runner().start()
