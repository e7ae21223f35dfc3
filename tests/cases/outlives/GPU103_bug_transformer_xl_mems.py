import torch
from torch import nn


def train(model, loader, opt, scheduler, args):
    model.train()
    mems = tuple()
    running = 0.0
    for step, (data, target, _) in enumerate(loader):
        ret = model(data.cuda(), target.cuda(), *mems)  # expect: GPU103@m
        loss, mems = ret[0], ret[1:]  # expect: GPU103@m
        loss = loss.float().mean()
        opt.zero_grad()
        loss.backward(retain_graph=True)  # maybe: GPU301
        nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        opt.step()
        scheduler.step()
        running += loss.item()
        if step % args.log_interval == 0:
            print(step, running)
            running = 0.0
