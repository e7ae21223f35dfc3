"""The flag goes through a method of the base class into a helper, and is False for the whole evaluation."""
# file: base.py
import torch


class BaseTask:
    def __init__(self, net, device="cuda"):
        self.net, self.device = net.to(device), device

    def scores_of(self, batch, with_grad):
        with torch.set_grad_enabled(with_grad):
            return self.net(batch.to(self.device))

    def run_batch(self, batch, training):
        return self.scores_of(batch[0], with_grad=training), batch[1].to(self.device)
# file: task.py
import torch
import torch.nn.functional as F

from base import BaseTask


class Retrieval(BaseTask):
    def fit(self, loader):
        opt = torch.optim.Adam(self.net.parameters())
        for batch in loader:
            scores, wanted = self.run_batch(batch, True)
            opt.zero_grad()
            F.cross_entropy(scores, wanted).backward()
            opt.step()

    def recall(self, loader, k=5):
        self.net.eval()
        found, rows = 0, 0
        for batch in loader:
            scores, wanted = self.run_batch(batch, False)
            found += (scores.topk(k).indices == wanted.unsqueeze(1)).any(1).sum().item()
            rows += len(wanted)
        return found / rows
