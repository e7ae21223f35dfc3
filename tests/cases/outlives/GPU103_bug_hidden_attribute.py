import torch
import torch.nn as nn


class Forecaster:
    def __init__(self, n_in, n_hidden, device="cuda"):
        self.rnn = nn.RNN(n_in, n_hidden).to(device)
        self.fc = nn.Linear(n_hidden, 1).to(device)
        self.hidden = torch.zeros(1, 1, n_hidden, device=device)
        params = list(self.rnn.parameters()) + list(self.fc.parameters())
        self.opt = torch.optim.Adam(params, lr=1e-3)
        self.device = device

    def step(self, window, target):
        out, self.hidden = self.rnn(window.to(self.device), self.hidden)  # expect: GPU103
        loss = nn.functional.mse_loss(self.fc(out[-1]), target.to(self.device))
        self.opt.zero_grad()
        loss.backward(retain_graph=True)  # maybe: GPU301
        self.opt.step()
        return loss.item()

    def fit(self, stream):
        return [self.step(w, t) for w, t in stream]
