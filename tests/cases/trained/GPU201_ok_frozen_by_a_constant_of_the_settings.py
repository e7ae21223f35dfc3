"""The settings are a module, and say that the encoder is not to be tuned: nothing of it requires grad."""

# file: nets.py
import torchvision
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        whole = torchvision.models.resnet50(weights="DEFAULT")
        self.trunk = nn.Sequential(*list(whole.children())[:-2])
        self.pool = nn.AdaptiveAvgPool2d(14)

    def forward(self, x):
        return self.pool(self.trunk(x)).flatten(2)

    def tune(self, wanted=True):
        for p in self.trunk.parameters():
            p.requires_grad = False
        for block in list(self.trunk.children())[5:]:
            for p in block.parameters():
                p.requires_grad = wanted


class Decoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.read = nn.Linear(2048, width)
        self.lstm = nn.LSTM(width, width, 2)

    def forward(self, x):
        return self.lstm(self.read(x.transpose(1, 2)))[0]

# file: train.py
import torch
import torch.nn.functional as F
from settings import *
from nets import Decoder, Encoder


def train(encoder, decoder, opt, loader):
    encoder.train()
    decoder.train()
    for x, y in loader:
        loss = F.mse_loss(decoder(encoder(x.cuda())), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()


def validate(encoder, decoder, loader):
    encoder.eval()
    decoder.eval()
    total = 0.0
    for x, y in loader:
        seen = encoder(x.cuda())
        with torch.no_grad():
            total += F.mse_loss(decoder(seen), y.cuda()).item()
    return total


def main(loaders):
    encoder, decoder = Encoder(), Decoder(512)
    encoder = Encoder()
    encoder.tune(tune_encoder)
    encoder, decoder = encoder.cuda(), decoder.cuda()
    wanted = [p for p in (*encoder.parameters(), *decoder.parameters()) if p.requires_grad]
    opt = torch.optim.Adam(wanted)
    for epoch in range(20):
        train(encoder, decoder, opt, loaders["train"])
        print(validate(encoder, decoder, loaders["val"]))
# file: settings.py
width = 512
tune_encoder = False
