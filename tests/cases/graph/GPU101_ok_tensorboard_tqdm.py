import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter
from tqdm.auto import tqdm


def train(model, loader, opt, epochs):
    writer = SummaryWriter()
    crit = nn.BCEWithLogitsLoss()
    step = 0
    for epoch in range(epochs):
        pbar = tqdm(loader)
        for x, y in pbar:
            loss = crit(model(x.cuda()), y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()
            writer.add_scalar("loss", loss, step)
            pbar.set_postfix(loss=loss.item())
            pbar.set_description("loss %.3f" % loss)
            step += 1
    writer.close()
