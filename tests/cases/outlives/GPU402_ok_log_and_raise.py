import logging

import torch
import torch.nn.functional as F

log = logging.getLogger(__name__)


def train(model, opt, loader):
    for i, (x, y) in enumerate(loader):
        try:
            loss = F.cross_entropy(model(x.cuda()), y.cuda())
            opt.zero_grad()
            loss.backward()
        except RuntimeError as e:
            if "out of memory" in str(e):
                log.error("OOM at batch %d with shape %s: %s", i, tuple(x.shape), e)
                log.error(torch.cuda.memory_summary())
            raise
        opt.step()
