"""Checkpoints have an optimizer's state, as the program writes them: one that restores it says how much it is, one that takes
the weights alone out of it, of a network that is not seen, does not."""

import torch


def save(net, optimizer, path):
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, path)


def go_on(make, loader, path):
    net = make().cuda()
    optimizer = torch.optim.Adam(net.parameters())
    checkpoint = torch.load(path)  # low: GPU403
    net.load_state_dict(checkpoint["net"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    save(net, optimizer, path)


def begin_with_its_weights(make, loader, path):
    net = make().cuda()
    optimizer = torch.optim.Adam(net.parameters())
    checkpoint = torch.load(path)  # low: GPU403
    net.load_state_dict(checkpoint["net"])
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    save(net, optimizer, path)
