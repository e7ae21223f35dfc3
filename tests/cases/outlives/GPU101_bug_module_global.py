import torch
from torch import nn, optim

total = 0
n_seen = 0

model = nn.LSTM(40, 256, num_layers=2, batch_first=True).cuda()
head = nn.Linear(256, 30).cuda()
opt = optim.Adam(list(model.parameters()) + list(head.parameters()))
criterion = nn.CrossEntropyLoss()


def update(frames, phones):
    global total, n_seen
    feats, _ = model(frames.cuda())
    loss = criterion(head(feats[:, -1]), phones.cuda())
    opt.zero_grad()
    loss.backward()
    opt.step()
    total += loss  # expect: GPU101
    n_seen += 1


def train(loader):
    for frames, phones in loader:
        update(frames, phones)
        if n_seen % 100 == 0:
            print(total / n_seen)
