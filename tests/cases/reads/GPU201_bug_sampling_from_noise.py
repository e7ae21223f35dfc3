"""Images drawn from noise: made-up input is what a generator is for."""

import numpy as np
import torch


class Painter:
    def __init__(self, generator, width, device):
        self.generator = generator.to(device)
        self.width = width
        self.device = device

    def draw(self, count, batch=64):
        self.generator.eval()
        pictures = []
        for _ in range(count // batch + 1):
            noise = torch.randn(batch, self.width, device=self.device)
            picture = self.generator(noise)  # expect: GPU201
            pictures.append(picture.detach().cpu().numpy())
        return np.concatenate(pictures)[:count]
