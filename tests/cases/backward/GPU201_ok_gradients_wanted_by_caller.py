import torch
from torch import nn


class RewardModel:
    """Scores are differentiated by the caller with respect to the latents."""

    def __init__(self, net: nn.Module):
        self.net = net.cuda().eval().requires_grad_(False)

    def score(self, image):
        return self.net(image).mean()


def optimise(decoder, reward: RewardModel, z, steps):
    decoder.eval()
    z = z.cuda().requires_grad_(True)
    opt = torch.optim.Adam([z], 0.05)
    for _ in range(steps):
        loss = -reward.score(decoder(z))  # low: GPU202
        opt.zero_grad()
        loss.backward()
        opt.step()
    return z.detach()
