import csv
import logging

import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter
from tqdm import trange

log = logging.getLogger("train")


def train(model, data, opt, steps, path):
    tb = SummaryWriter()
    with open(path, "w") as f:
        rows = csv.writer(f)
        for i in (bar := trange(steps)):
            x, y = data(i)
            loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()
            tb.add_scalar("loss", loss, i)
            tb.add_scalars("all", {"loss": loss}, i)
            bar.set_postfix(loss=loss)
            rows.writerow([i, loss.item()])
            log.info("step %d loss %s", i, loss)
