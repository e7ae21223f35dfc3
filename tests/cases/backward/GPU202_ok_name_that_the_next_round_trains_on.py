"""A name is bound late in a round, and the next round goes backward through it: round the loop, over a `continue`, out of a
`break`, past a `try`, under one of two conditions."""
import torch
from torch import nn
from torchvision.models import resnet50
from torchvision.utils import save_image


class Painting:
    def __init__(self):
        self.painter = nn.Sequential(nn.ConvTranspose2d(128, 512, 4), nn.ReLU(), nn.ConvTranspose2d(512, 3, 8, 4)).cuda()
        self.judge = resnet50(num_classes=1).cuda()

    def round_the_loop(self, loader, fixed, optimizer):
        fake = self.painter(fixed)
        for step, _ in enumerate(loader):
            optimizer.zero_grad()
            self.judge(fake).mean().backward()
            optimizer.step()
            fake = self.painter(fixed)
            save_image(fake.detach(), f"{step}.png")

    def over_a_continue(self, loader, fixed, optimizer):
        fake = None
        for step, real in enumerate(loader):
            if fake is not None:
                optimizer.zero_grad()
                self.judge(fake).mean().backward()
                optimizer.step()
            if real.sum() > 0:
                fake = self.painter(fixed)
                save_image(fake.detach(), f"{step}.png")
                continue
            fake = None

    def out_of_a_break(self, loader, fixed, optimizer):
        optimizer.zero_grad()
        for step, _ in enumerate(loader):
            fake = self.painter(fixed)
            save_image(fake.detach(), f"{step}.png")
            if step > 3:
                break
            fake = fixed
        self.judge(fake).mean().backward()
        optimizer.step()

    def past_a_try(self, loader, fixed, optimizer):
        for step, real in enumerate(loader):
            optimizer.zero_grad()
            try:
                fake = self.painter(fixed)
                save_image(fake.detach(), f"{step}.png")
                fake = fixed
            except OSError:
                self.judge(fake).mean().backward()
            optimizer.step()

    def under_one_of_two(self, loader, fixed, optimizer, plain):
        for step, _ in enumerate(loader):
            optimizer.zero_grad()
            fake = self.painter(fixed)
            save_image(fake.detach(), f"{step}.png")
            if plain:
                fake = fixed
            self.judge(fake).mean().backward()
            optimizer.step()
