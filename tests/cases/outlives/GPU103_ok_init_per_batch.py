import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, v, d, n_tag):
        super().__init__()
        self.d = d
        self.emb, self.lstm, self.fc = nn.Embedding(v, d), nn.LSTM(d, d), nn.Linear(d, n_tag)
        self.hidden = None

    def init_hidden(self, b, dev):
        return torch.zeros(1, b, self.d, device=dev), torch.zeros(1, b, self.d, device=dev)

    def forward(self, s):
        e = self.emb(s)
        o, self.hidden = self.lstm(e, self.hidden)
        return self.fc(o)


def train(net, sents, dev):
    net.to(dev)
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for s, tags in sents:
        net.zero_grad()
        net.hidden = net.init_hidden(s.size(1), dev)
        scores = net(s.to(dev))
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), tags.to(dev).flatten())
        loss.backward()
        opt.step()
