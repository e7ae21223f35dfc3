import torch
from torch import nn


def train(rnn: nn.LSTM, head, loader, epochs):
    rnn.cuda()
    head.cuda()
    opt = torch.optim.Adam([*rnn.parameters(), *head.parameters()])
    for _ in range(epochs):
        for x, y in loader:
            out, (hn, cn) = rnn(x.cuda())
            loss = nn.functional.cross_entropy(head(hn[-1]), y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()
