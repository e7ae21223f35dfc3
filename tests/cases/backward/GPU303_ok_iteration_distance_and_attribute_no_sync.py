import torch
import torch.nn.functional as F


class Engine:
    def __init__(self, model, opt, accum, device):
        self.model, self.opt, self.accum, self.device = model, opt, accum, device
        self.no_sync = model.no_sync
        self.last_step = 0

    def maybe_no_sync(self, it):
        from contextlib import nullcontext

        return self.no_sync() if it - self.last_step < self.accum else nullcontext()

    def run(self, loader):
        shown = torch.zeros((), device=self.device)
        for it, (x, y) in enumerate(loader, start=1):
            with self.maybe_no_sync(it):
                loss = F.cross_entropy(self.model(x.to(self.device)), y.to(self.device)) / self.accum
                loss.backward()
            shown += loss.detach()
            if it - self.last_step >= self.accum:
                self.opt.step()
                self.opt.zero_grad()
                self.last_step = it
        return shown.item()
