import torch
from torch import nn


def train(net, loader, opt):
    scaler = torch.amp.GradScaler("cuda")
    torch.cuda.reset_peak_memory_stats()
    for x, y in loader:
        with torch.autocast("cuda"):
            loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
    print(torch.cuda.memory_reserved(), torch.cuda.max_memory_reserved(), torch.cuda.max_memory_allocated())
