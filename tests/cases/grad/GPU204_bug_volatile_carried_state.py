"""Words are drawn one after the other from a network of old: its state carries the graph of all of them."""

import torch
from torch.autograd import Variable


def generate(model, hidden, words):
    model.eval()
    token = Variable(torch.zeros(1, 1).long().cuda(), volatile=True)  # expect: GPU204
    text = []
    for _ in range(words):
        scores, hidden = model(token, hidden)  # maybe: GPU103  # note: GPU201
        token.data.copy_(scores.data.argmax())
        text.append(token.data[0].item())
    return text


def score(model, x, testing):
    if testing:
        x = Variable(x, volatile=True)  # expect: GPU204
    else:
        x = Variable(x)
    return model(x)
