"""Once for each epoch, which goes through its samples several times over: the steps are two loops further in."""

import numpy as np
import torch


def train(model, criterion, optimizer, prepare, epochs, passes):
    model.cuda()
    jobs = prepare()
    for epoch in np.arange(epochs) + 1:
        samples = [job.get() for job in jobs[:-1]]
        held_out = jobs[-1].get()
        jobs = prepare()
        model.train()
        torch.cuda.empty_cache()
        for _ in range(passes):
            for x, y in samples:
                loss = criterion(model(x.cuda()), y.cuda())
                optimizer.zero_grad()
                torch.cuda.empty_cache()  # expect: GPU501
                loss.backward()
                optimizer.step()
        model.eval()
        with torch.no_grad():
            right = (model(held_out[0].cuda()).argmax(1).cpu() == held_out[1]).float().mean().item()
            print(epoch, right)
            del right
        del samples, held_out
