"""The networks are made frozen, and each phase thaws what it trains: whether grad is off again here is a doubt."""

import copy


def train(build, phases_of, batches, beta=0.999):
    net = build().train().requires_grad_(False).cuda()
    average = copy.deepcopy(net).eval()
    for batch in batches:
        for phase in phases_of(net):
            phase.module.requires_grad_(True)
            phase.loss(batch.cuda()).backward()  # low: GPU505
            phase.opt.step()
            phase.opt.zero_grad(set_to_none=True)
            phase.module.requires_grad_(False)
        for kept, new in zip(average.parameters(), net.parameters()):
            kept.copy_(new.lerp(kept, beta))  # low: GPU107
    return average
