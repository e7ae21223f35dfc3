import torch
from torch import nn
from tqdm import tqdm


def encode_all(encoder: nn.Module, loader, device):
    encoder.eval()
    feats = []
    for x in tqdm(loader):
        z = encoder(x.to(device))  # expect: GPU201
        feats.append(z.cpu())  # expect: GPU101
    return torch.cat(feats)


def train_losses(net, crit, opt, loader, device):
    curve = []
    for x, y in loader:
        opt.zero_grad()
        loss = crit(net(x.to(device)), y.to(device))
        loss.backward()
        opt.step()
        curve.append(loss.cpu())  # expect: GPU101
    return torch.stack(curve).mean().item()
