"""A likelihood of log-probabilities saves what it is given, whoever lets go of the name."""

import torch
from torch import nn
from torch.nn import functional as F

likelihood = nn.NLLLoss(ignore_index=0)


def teach(net, loader, vocabulary, opt):
    for tokens, labels in loader:
        pred = net(tokens.cuda())
        loss = likelihood(pred.view(-1, vocabulary), labels.cuda().view(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()


def teach_pairs(net, loader, vocabulary, opt):
    for tokens, labels in loader:
        pred = net(tokens.cuda())
        loss = F.binary_cross_entropy_with_logits(pred.view(-1, vocabulary), labels.cuda().view(-1, vocabulary))
        opt.zero_grad()
        loss.backward()
        opt.step()


class Speech:
    def __init__(self, net: nn.Module):
        self.net = net.cuda()
        self.loss = torch.nn.NLLLoss()
        self.opt = torch.optim.Adam(net.parameters())

    def step(self, tokens, labels, vocab_size):
        logits = self.net(tokens.cuda())
        loss = self.loss(logits.view(-1, vocab_size), labels.cuda().view(-1))
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
