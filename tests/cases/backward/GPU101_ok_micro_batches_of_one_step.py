import torch
from torch import nn


class Trainer:
    def __init__(self, gan, loader, d_opt, every=4):
        self.gan, self.loader, self.d_opt, self.every = gan.cuda(), loader, d_opt, every

    def train(self):
        total = torch.zeros([], device="cuda")
        self.d_opt.zero_grad()
        for _ in range(self.every):
            images = next(self.loader).cuda()
            with torch.no_grad():
                fake = self.gan.generate(images.shape[0])
            divergence = nn.functional.relu(1 + self.gan.judge(images)).mean() + self.gan.judge(fake).mean()
            (divergence / self.every).backward()
            total += divergence
        self.d_opt.step()
        self.d_loss = float(total.item() / self.every)
