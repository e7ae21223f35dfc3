"""The criterion is a cross-entropy that the object, the file or the function has made: it saves its log-softmax, not the logits."""

import torch
from torch import nn

loss_fn = nn.CrossEntropyLoss(ignore_index=0)


class Lesson:
    def __init__(self, net: nn.Module, vocabulary):
        self.net, self.vocabulary = net.cuda(), vocabulary
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.1).cuda()
        self.opt = torch.optim.AdamW(net.parameters())

    def step(self, tokens):
        logits = self.net(tokens)
        loss = self.criterion(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())  # maybe: GPU401
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


def teach(net, loader, vocabulary, opt):
    for tokens, labels in loader:
        pred = net(tokens.cuda())
        loss = loss_fn(pred.view(-1, vocabulary), labels.cuda().view(-1))  # expect: GPU401
        opt.zero_grad()
        loss.backward()
        opt.step()


def teach_once(net, tokens, labels, vocab_size, opt):
    criterion = nn.CrossEntropyLoss()
    logits = net(tokens)
    loss = criterion(logits.view(-1, vocab_size), labels.view(-1))  # expect: GPU401
    loss.backward()
    opt.step()
