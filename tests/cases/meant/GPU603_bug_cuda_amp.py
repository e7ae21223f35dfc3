import torch
from torch import nn


def train(net, loader, opt):
    scaler = torch.cuda.amp.GradScaler()  # expect: GPU603
    for x, y in loader:
        with torch.cuda.amp.autocast():  # expect: GPU603
            loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
