import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence


class Tagger(nn.Module):
    def __init__(self, words, tags):
        super().__init__()
        self.embed = nn.Embedding(words, 32)
        self.rnn = nn.LSTM(32, 64)
        self.head = nn.Linear(64, tags)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, words, lengths, tags):
        packed = pack_padded_sequence(self.embed(words), lengths)
        out, _ = self.rnn(packed)
        out = out.data
        return self.loss(self.head(out), tags)


def train(loader, words, tags):
    model = Tagger(words, tags).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for batch, lengths, wanted in loader:
        optimizer.zero_grad()
        model(batch.cuda(), lengths, wanted.cuda()).backward()
        optimizer.step()
