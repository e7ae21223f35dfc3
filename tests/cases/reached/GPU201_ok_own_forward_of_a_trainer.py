"""One private method for both; the validation is only ever entered with grad off, by the loop of the same class."""

import torch
from torch import nn, optim


class Trainer:
    def __init__(self, net: nn.Module, train_loader, dev_loader):
        self.net = net.cuda()
        self.train_loader, self.dev_loader = train_loader, dev_loader
        self.loss_fn = nn.CTCLoss(zero_infinity=True)
        self.opt = optim.Adam(self.net.parameters(), lr=3e-4)

    def _forward(self, batch):
        feats, feat_lens, text, text_lens = batch
        log_probs = self.net(feats.cuda()).log_softmax(-1)
        return self.loss_fn(log_probs.transpose(0, 1), text.cuda(), feat_lens, text_lens), log_probs

    def train_epoch(self):
        self.net.train()
        for batch in self.train_loader:
            loss, _ = self._forward(batch)
            self.opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.net.parameters(), 5.0)
            self.opt.step()

    def _validate(self):
        self.net.eval()
        total, blanks = 0.0, []
        for batch in self.dev_loader:
            loss, log_probs = self._forward(batch)
            total += loss.item()
            blanks.append((log_probs.argmax(-1) == 0).float().mean().item())
        return total / len(self.dev_loader), sum(blanks) / len(blanks)

    def run(self, epochs):
        for epoch in range(epochs):
            self.train_epoch()
            with torch.set_grad_enabled(False):
                print(epoch, *self._validate())
