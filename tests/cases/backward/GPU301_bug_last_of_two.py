import torch
from torch import nn


def train(trunk, policy_head, value_head, batches, opt):
    for obs, act, adv, ret in batches:
        h = trunk(obs.cuda())
        logp = policy_head(h).log_softmax(-1).gather(1, act.cuda()[:, None]).squeeze(1)
        pg = -(logp * adv.cuda()).mean()
        vf = nn.functional.mse_loss(value_head(h).squeeze(1), ret.cuda())
        opt.zero_grad()
        pg.backward(retain_graph=True)
        vf.backward(retain_graph=True)  # expect: GPU301
        opt.step()
