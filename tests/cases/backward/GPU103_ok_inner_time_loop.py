import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.cell = nn.GRUCell(n, d)
        self.fc = nn.Linear(d, n)

    def forward(self, x, h):
        h = self.cell(x, h)
        return self.fc(h), h


def train(series, n, d, epochs):
    net = Decoder(n, d).to("cuda")
    opt = torch.optim.Adam(net.parameters())
    for ep in range(epochs):
        for seq in series:
            seq = seq.to("cuda")
            h = torch.zeros(seq.size(1), d, device="cuda")
            loss = 0.0
            for t in range(seq.size(0) - 1):
                y, h = net(seq[t], h)
                loss = loss + nn.functional.mse_loss(y, seq[t + 1])
            opt.zero_grad()
            loss.backward()
            opt.step()
