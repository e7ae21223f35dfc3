"""What a method of a network gives is cut off its graph and drawn, under the names that the training step has used."""
import torch
from torch import nn
from torchvision.models import resnet50
from torchvision.utils import save_image


class Painter(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.ConvTranspose2d(128, 512, 4), nn.ReLU(), nn.ConvTranspose2d(512, 3, 8, 4))

    def sample_images(self, noise):
        return self.layers(noise), noise

    def forward(self, noise):
        return self.layers(noise)


class Painting:
    def __init__(self):
        self.painter = Painter().cuda()
        self.judge = resnet50(num_classes=1).cuda()

    def fit(self, loader, fixed):
        optimizer = torch.optim.Adam(self.painter.parameters())
        self.painter.train()
        for step, _ in enumerate(loader):
            fake = (self.painter.sample_images(torch.randn(64, 128, 1, 1, device="cuda")), step)
            sheet = fake[0][0]
            optimizer.zero_grad()
            self.judge(sheet).mean().backward()  # expect: GPU202
            optimizer.step()
            if step % 500 == 0:
                fake = (self.painter.sample_images(fixed), step)  # expect: GPU201
                sheet = fake[0][0].permute(0, 1, 3, 2)
                sheet = sheet.data / 2 + 0.5
                save_image(sheet, f"{step}.png")
