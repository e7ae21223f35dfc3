"""The backward that comes later goes through a part of the same graph, of another name."""

import torch


def adversaries(model, other, loader, criterion, first, second):
    for real in loader:
        made = model(torch.randn(len(real), 8, device="cuda"))
        loss = criterion(other(real.cuda(), made))
        first.zero_grad()
        loss.backward(retain_graph=True)
        first.step()
        loss = criterion(other(made))
        second.zero_grad()
        loss.backward()
        second.step()


class Permuted:
    def train(self, loader, first, second, criterion):
        for real, others in loader:
            code = self.net(real.cuda())
            verdict = self.D(code)
            loss = criterion(code) + verdict.mean()
            first.zero_grad()
            loss.backward(retain_graph=True)
            first.step()
            apart = criterion(verdict, self.D(self.net(others.cuda()).detach()))  # maybe: GPU202
            second.zero_grad()
            apart.backward()
            second.step()
