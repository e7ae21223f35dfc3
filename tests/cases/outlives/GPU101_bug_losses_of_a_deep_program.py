"""A loss that comes up through more calls than are told apart is made by the call that gives it; one that is read is not kept."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(9000, 512), nn.LSTM(512, 512), nn.Linear(512, 9000)

    def encode(self, tokens):
        return self.embed(tokens)

    def decode(self, rows):
        rows, _ = self.rnn(rows)
        return self.head(rows), rows

    def forward(self, tokens):
        return self.decode(self.encode(tokens))

    def both(self, tokens):
        return self.forward(tokens)

    def scores(self, tokens):
        found, _ = self.both(tokens)
        return found

    def loss(self, tokens):
        found = self.scores(tokens)
        return cross_entropy(found.view(-1, 9000), tokens.view(-1))


class Trainer:
    def __init__(self):
        self.model = Net().cuda()
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def step(self, tokens):
        loss = self.model.loss(tokens.cuda())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss

    def run(self, loader, epochs):
        for epoch in range(epochs):
            total, read = 0, 0.0
            for tokens in loader:
                loss = self.step(tokens)
                total += loss  # note: GPU101
                read += loss.item()
            print(epoch, total, read)


if __name__ == "__main__":
    Trainer().run(torch.utils.data.DataLoader([]), 3)
