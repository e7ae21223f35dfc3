import torch
import torch.nn as nn


class StatefulGRU(nn.Module):
    def __init__(self, n_in, n_hid):
        super().__init__()
        self.gru = nn.GRU(n_in, n_hid, batch_first=True)
        self.fc = nn.Linear(n_hid, n_in)

    def forward(self, x, h=None):
        y, h = self.gru(x, h)
        return self.fc(y), h.detach()


def train(net: StatefulGRU, batches, device):
    net = net.to(device)
    opt = torch.optim.RMSprop(net.parameters())
    h = None
    for x, y in batches:
        pred, h = net(x.to(device), h)
        loss = nn.functional.mse_loss(pred, y.to(device))
        opt.zero_grad()
        loss.backward()
        opt.step()
