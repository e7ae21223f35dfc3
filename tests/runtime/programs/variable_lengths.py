# Every batch has another length: allocated goes up and down.
import random

import torch
from setting import device
from torch import nn

model = nn.LSTM(32, 64, batch_first=True).to(device)
head = nn.Linear(64, 4).to(device)
optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=1e-3)
lengths = random.Random(0)
for _ in range(1000):
    x = torch.randn(8, lengths.randint(4, 60), 32).to(device)
    out, _ = model(x)
    loss = head(out[:, -1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
