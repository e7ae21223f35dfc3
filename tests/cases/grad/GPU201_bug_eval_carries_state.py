import math

import torch
from torch import nn


def evaluate(model, data_source, criterion, bptt, ntokens):
    model.eval()
    total_loss = 0.0
    hidden = model.init_hidden(10)
    for i in range(0, data_source.size(0) - 1, bptt):
        data = data_source[i : i + bptt]
        targets = data_source[i + 1 : i + 1 + bptt].reshape(-1)
        output, hidden = model(data, hidden)  # expect: GPU201  # maybe: GPU103
        total_loss += len(data) * criterion(output.view(-1, ntokens), targets).item()  # maybe: GPU401
    return math.exp(total_loss / len(data_source))
