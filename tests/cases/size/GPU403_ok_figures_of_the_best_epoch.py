"""Of the best epoch some figures are read again: no weights are in that file."""

import torch
from torchvision.models import vit_l_16


class Experiment:
    def __init__(self, classes, lr):
        self.net = vit_l_16(num_classes=classes).to("cuda")
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr)

    def keep(self, epoch, accuracy):
        torch.save({"epoch": epoch, "accuracy": accuracy, "lr": self.optimizer.param_groups[0]["lr"]}, "best.info")
        torch.save(self.net.state_dict(), "best.ckpt")

    def test(self, loader):
        best = torch.load("best.info")
        self.net.load_state_dict(torch.load("best.ckpt", map_location="cpu"))
        self.net.eval()
        hits = 0
        with torch.no_grad():
            for x, y in loader:
                hits += (self.net(x.to("cuda")).argmax(1).cpu() == y).sum().item()
        print(best["epoch"], best["accuracy"], hits / len(loader.dataset))
