"""A name that a backward has gone through is bound anew: what it has then is only drawn, and no backward gets there."""
import torch
from torch import nn
from torchvision.models import resnet50
from torchvision.utils import save_image


def denorm(pictures):
    return (pictures + 1) / 2


class Painting:
    def __init__(self):
        self.painter = nn.Sequential(
            nn.ConvTranspose2d(128, 4096, 4), nn.ReLU(), nn.ConvTranspose2d(4096, 3, 8, 4)
        ).cuda()
        self.judge = resnet50(num_classes=1).cuda()

    def fit(self, loader, fixed, of_painter, of_judge):
        for step, real in enumerate(loader):
            fake = self.painter(torch.randn(4, 128, 1, 1, device="cuda"))
            of_painter.zero_grad()
            self.judge(fake).mean().backward()
            of_painter.step()
            of_judge.zero_grad()
            (self.judge(real.cuda()) - self.judge(fake.detach())).mean().backward()
            of_judge.step()
            if step % 500 == 0:
                fake = self.painter(fixed)  # expect: GPU202
                fake = fake.permute(0, 1, 3, 2)
                save_image(denorm(fake.data), f"{step}.png")

    def fit_judge_first(self, loader, of_painter, of_judge):
        for real in loader:
            for _ in range(5):
                of_judge.zero_grad()
                noise = torch.randn(4, 128, 1, 1, device="cuda")
                fake = self.painter(noise)  # expect: GPU202
                (self.judge(real.cuda()) - self.judge(fake.detach())).mean().backward()
                of_judge.step()
            of_painter.zero_grad()
            fake = self.painter(noise)
            self.judge(fake).mean().backward()
            of_painter.step()

    def fit_with_del(self, loader, fixed, of_painter):
        for step, _ in enumerate(loader):
            fake = self.painter(torch.randn(4, 128, 1, 1, device="cuda"))
            of_painter.zero_grad()
            self.judge(fake).mean().backward()
            of_painter.step()
            del fake
            try:
                fake = self.painter(fixed)  # expect: GPU202
                save_image(fake.detach(), f"{step}.png")
            except OSError:
                continue
            finally:
                print(step)
            del fake
