"""A copy that the same step loads again and deletes: it is needed at once, and gone before the next."""

import copy

from torch import nn


def mixed(net, own, shared, loader, opt):
    net.cuda()
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        before = copy.deepcopy(net.state_dict())  # low: GPU404
        net.load_state_dict({key: 0.5 * own[key] + 0.5 * shared[key] for key in own})
        loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
        net.load_state_dict(before)
        del before
