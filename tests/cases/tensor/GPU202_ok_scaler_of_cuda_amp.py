import torch
from torch import nn
from torch.cuda.amp import GradScaler


class Trainer:
    def __init__(self, vae: nn.Module, loader):
        self.vae = vae.cuda()
        self.loader = loader
        self.scaler = GradScaler()  # maybe: GPU603
        self.opt = torch.optim.Adam(vae.parameters(), 1e-4)

    def step(self, accumulate=4):
        self.vae.train()
        for _ in range(accumulate):
            images = next(self.loader).cuda()
            loss = self.vae(images)
            self.scaler.scale(loss / accumulate).backward()
        self.scaler.step(self.opt)
        self.scaler.update()
        self.opt.zero_grad()
        return loss.item()
