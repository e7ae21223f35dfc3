"""Two networks that are parameters: what one function trains, another runs word by word."""

import torch
from torch import nn, optim


def fit(reader, writer, pairs):
    first = optim.SGD(reader.parameters(), lr=0.1)
    second = optim.SGD(writer.parameters(), lr=0.1)
    nll = nn.NLLLoss()
    for source, target in pairs:
        first.zero_grad()
        second.zero_grad()
        state = reader(source)
        loss = nll(writer(target, state), target)
        loss.backward()
        first.step()
        second.step()


def translate(reader, writer, source, start, end, limit=50):
    state = reader(source)  # expect: GPU201
    words, token = [], torch.tensor([[start]])
    for _ in range(limit):
        scores, state = writer(token, state)  # @a
        best = scores.data.topk(1)[1]
        if best.item() == end:
            break
        words.append(best.item())
        token = best.detach()
    return words
