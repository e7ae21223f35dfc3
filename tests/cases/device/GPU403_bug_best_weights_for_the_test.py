"""After the training the best checkpoint is loaded onto the GPU and lies there, under its name, all through the test."""

import torch
from torchvision.models import vit_l_16


class Experiment:
    def __init__(self, classes, lr):
        self.net = vit_l_16(num_classes=classes).to("cuda")
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr)

    def keep(self, epoch, accuracy):
        entries = {"net": self.net.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save({**entries, "epoch": epoch, "accuracy": accuracy}, "best.ckpt")

    def test(self, loader):
        best = torch.load("best.ckpt")  # expect: GPU403
        self.net.load_state_dict(best["net"])
        self.net.eval()
        hits = 0
        with torch.no_grad():
            for x, y in loader:
                hits += (self.net(x.to("cuda")).argmax(1).cpu() == y).sum().item()
        print(best["epoch"], best["accuracy"], hits / len(loader.dataset))
