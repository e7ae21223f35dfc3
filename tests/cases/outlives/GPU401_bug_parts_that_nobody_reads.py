"""Parts of what a network gives that nobody reads, and that their names keep through the backward."""

import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY = 50_257


class Writer(nn.Module):
    def __init__(self, width=768):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        self.layer = nn.TransformerEncoderLayer(width, 12)
        self.head = nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens, targets=None):
        hidden = self.layer(self.embed(tokens))
        if targets is None:
            return self.head(hidden[:, -1:]), None
        scores = self.head(hidden)
        loss = F.cross_entropy(scores.view(-1, scores.size(-1)), targets.view(-1))
        return scores, loss


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 3, padding=1)
        self.main = nn.Conv2d(64, 21, 1)
        self.side = nn.Conv2d(64, 21, 1)

    def forward(self, images):
        features = self.stem(images)
        return self.main(features), self.side(features), features


def write(loader, optimizer):
    net = Writer().cuda()
    for tokens in loader:
        tokens = tokens.cuda()
        scores, loss = net(tokens[:, :-1], tokens[:, 1:])  # expect: GPU401
        loss = loss / 4
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def write_only(loader, optimizer):
    net = Writer().cuda()
    for tokens in loader:
        tokens = tokens.cuda()
        loss = net(tokens[:, :-1], tokens[:, 1:])[1]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def segment(loader, optimizer):
    net = Segmenter().cuda()
    for images, labels in loader:
        main, side, _ = net(images.cuda())  # expect: GPU401
        loss = F.cross_entropy(main, labels.cuda())  # expect: GPU401
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def segment_with_features(loader, optimizer):
    net = Segmenter().cuda()
    for images, labels in loader:
        main, _, features = net(images.cuda())  # maybe: GPU401
        loss = F.cross_entropy(main, labels.cuda())
        del main, _
        loss.backward()  # the layers behind the features have saved them
        optimizer.step()
        optimizer.zero_grad()
