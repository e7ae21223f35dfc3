"""What is on the GPU is put into a tensor on the host, and goes back with it."""

import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(200, 256)
        self.lstm = nn.LSTM(256, 128, batch_first=True, bidirectional=True)
        self.layers = nn.ModuleList(nn.LSTM(256, 128, batch_first=True, bidirectional=True) for _ in range(6))

    def forward(self, words, lengths, mask):
        x = self.embed(words)
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        x, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        padded = torch.zeros(x.shape[0], mask.shape[1], x.shape[2])
        padded[:, : x.shape[1]] = x
        x = padded.to(x.device)  # expect: GPU505
        for layer in self.layers:
            x, _ = layer(x)
            again = torch.zeros(x.shape[0], mask.shape[1], x.shape[2])
            again[:, : x.shape[1]] = x
            x = again.to(x.device)  # expect: GPU505
        return x


def train(loader):
    model = Reader().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for words, lengths, mask in loader:
        loss = model(words.cuda(), lengths.cuda(), mask.cuda()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train([])
