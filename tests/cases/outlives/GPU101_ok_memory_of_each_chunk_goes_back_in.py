"""What is kept of a chunk goes into the network's next call on it; a backward could not go through it twice."""

import torch


def train(net, loader, opt, chunks):
    net.cuda()
    memories = [tuple() for _ in range(chunks)]
    total = 0.0
    for data, target in loader:
        opt.zero_grad()
        for i, (x, y) in enumerate(zip(data.cuda().chunk(chunks), target.cuda().chunk(chunks))):
            out = net(x, y, *memories[i])
            loss, memories[i] = out[0], out[1:]
            loss = loss.mean() / chunks
            loss.backward()
            total += loss.item()
        opt.step()
    return total
