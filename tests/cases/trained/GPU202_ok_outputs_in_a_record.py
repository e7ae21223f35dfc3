import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutput


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 1024, 16, 16)

    def forward(self, pictures):
        return BaseModelOutput(last_hidden_state=self.conv(pictures).flatten(2))


class Answers(nn.Module):
    def __init__(self):
        super().__init__()
        self.eyes = nn.Conv2d(3, 3, 3, padding=1)
        self.encoder = Encoder()

    def forward(self, pictures, train=True):
        seen = self.eyes(pictures)
        shape = torch.ones(seen.size()[:-1])
        encoded = self.encoder(seen).last_hidden_state
        return encoded.mean() if train else (encoded, shape)


def train(loader):
    net = Answers().cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    for pictures in loader:
        loss = net(pictures.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
