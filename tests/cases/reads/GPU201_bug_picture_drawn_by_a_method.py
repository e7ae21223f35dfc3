"""The result of a forward beside the training goes to a method in sight, which only draws it; another one goes on with it."""
import torch
from torch import nn
from torchvision.utils import save_image


class Painting:
    def __init__(self, painter: nn.Module, judge: nn.Module):
        self.painter, self.judge = painter.cuda(), judge.cuda()

    @staticmethod
    def make_sheet(pictures, path):
        pictures = [torch.clamp(one.detach() / 2 + 0.5, 0, 1) for one in pictures]
        for number, picture in enumerate(pictures):
            save_image(picture, f"{path}_{number}.png")

    @staticmethod
    def make_blend(pictures, others):
        return [0.5 * one + 0.5 * other for one, other in zip(pictures, others)]

    def fit(self, loader, fixed, optimizer, of_judge):
        for step, real in enumerate(loader):
            noise = torch.randn(64, 128, device="cuda")
            of_judge.zero_grad()
            with torch.no_grad():
                fake = self.painter(noise)
            (self.judge(fake) - self.judge(real.cuda())).mean().backward()
            of_judge.step()
            optimizer.zero_grad()
            blended = self.make_blend(self.painter(noise), self.painter(fixed))
            (-self.judge(torch.stack(blended)).mean()).backward()
            optimizer.step()
            if step % 500 == 0:
                self.make_sheet(self.painter(fixed), f"sheet_{step}")  # expect: GPU201
