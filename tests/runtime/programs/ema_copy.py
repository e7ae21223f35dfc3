# An exponential moving average of the weights: one copy, updated in place.
import copy

import torch
from setting import learn, training

model, optimizer = training()
average = copy.deepcopy(model)
for _ in range(1000):
    learn(model, optimizer)
    with torch.no_grad():
        for kept, new in zip(average.parameters(), model.parameters(), strict=True):
            kept.mul_(0.99).add_(new, alpha=0.01)
