import torch
import torch.nn.functional as F

device_module = torch.cuda if torch.cuda.is_available() else torch.xpu


def empty():
    torch.cuda.empty_cache()  # expect: GPU501@e


class Loop:
    def __init__(self, model, opt):
        self.model, self.opt = model, opt

    def after_step(self):
        empty()  # expect: GPU501@e

    def run(self, loader):
        for x, y in loader:
            loss = F.cross_entropy(self.model(x.cuda()), y.cuda())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.after_step()  # expect: GPU501@e
