"""The object keeps what its network gives, and hands it out: whoever asks for it may go backward."""

# file: segmenter.py
import torch


class Segmenter:
    def __init__(self, net: torch.nn.Module):
        self.net = net.cuda()

    def raw(self):
        return self.scores

    def run(self, batch):
        self.net.eval()
        self.scores = self.net(batch["image"].cuda())  # low: GPU201
        return torch.argmax(self.scores, dim=1)


class Another:
    def __init__(self, net: torch.nn.Module):
        self.net = net.cuda()

    def run(self, batch):
        self.net.eval()
        self.logits = self.net(batch["image"].cuda())  # low: GPU201
        return torch.argmax(self.logits, dim=1)


def distilled(teacher: Another, student: torch.nn.Module, batch):
    teacher.run(batch)
    return (student(batch["image"].cuda()) - teacher.logits).pow(2).mean()
