"""A name is bound anew in some of the cases of a `match`, and in the rounds of a loop that may have none: after them a
backward goes through what it was bound to before."""

from torch import nn
from torchvision.models import resnet50
from torchvision.utils import save_image


class Painting:
    def __init__(self):
        self.painter = nn.Sequential(
            nn.ConvTranspose2d(128, 512, 4), nn.ReLU(), nn.ConvTranspose2d(512, 3, 8, 4)
        ).cuda()
        self.judge = resnet50(num_classes=1).cuda()

    def by_case(self, loader, fixed, optimizer, kind):
        for step, _ in enumerate(loader):
            optimizer.zero_grad()
            fake = self.painter(fixed)
            save_image(fake.detach(), f"{step}.png")
            match kind:
                case "plain":
                    fake = fixed
            self.judge(fake).mean().backward()
            optimizer.step()

    def by_rounds(self, loader, fixed, optimizer, others):
        for step, _ in enumerate(loader):
            optimizer.zero_grad()
            fake = self.painter(fixed)
            save_image(fake.detach(), f"{step}.png")
            for fake in others:
                print(fake.shape)
            while fixed.sum() > step:
                fixed = fixed / 2
                fake = fixed
            self.judge(fake).mean().backward()
            optimizer.step()
