import torch
from torch import nn


def pretrain(model, loader, opt, accum, log):
    running = 0
    for i, (tok, tgt) in enumerate(loader):
        out = model(tok.cuda())
        loss = nn.functional.mse_loss(out, tgt.cuda()) / accum
        loss.backward()
        running += loss
        if (i + 1) % accum == 0:
            opt.step()
            opt.zero_grad()
            log.info("step %d loss %.4f", i // accum, running)
            running = 0
