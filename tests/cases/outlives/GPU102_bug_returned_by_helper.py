import torch
from torch import nn


class Validator:
    def __init__(self, net: nn.Module, device="cuda"):
        self.net, self.device = net.to(device), device

    @torch.no_grad()
    def infer(self, batch):
        return self.net(batch["wav"].to(self.device)), batch["target"]

    def run(self, loader):
        self.net.eval()
        outputs, targets = [], []
        for batch in loader:
            out, tgt = self.infer(batch)
            outputs.append(out)  # low: GPU102
            targets.append(tgt)
        return torch.cat(outputs).cpu().numpy(), torch.cat(targets).numpy()
