import time

import torch
from torch import nn


def train(model, fetch, opt, steps):
    for i in range(steps):
        try:
            x, y = fetch()
        except (ConnectionError, TimeoutError) as err:
            print("fetch failed", err)
            time.sleep(1.0)
            x, y = fetch()
        try:
            loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
        except ValueError:
            x, y = x.float(), y.float()
            loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
    try:
        torch.save(model.state_dict(), "/mnt/out/model.pt")
    except RuntimeError as e:
        print("cannot write there:", e)
        torch.save(model.state_dict(), "model.pt")
