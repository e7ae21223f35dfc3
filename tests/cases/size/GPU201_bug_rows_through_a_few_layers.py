"""An evaluation that holds, of networks through which nothing but rows go: what it saves of them is next to nothing."""

import torch
from torch import nn


class Probe(nn.Module):
    def __init__(self, width=512, classes=100):
        super().__init__()
        self.norm = nn.BatchNorm1d(width)
        self.head = nn.Linear(width, classes)

    def forward(self, features):
        return self.head(self.norm(features))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(30000, 256)
        self.recurrent = nn.GRU(256, 256)
        self.head = nn.Linear(256, 2)

    def forward(self, tokens):
        return self.head(self.recurrent(self.table(tokens))[0][-1])


def validate(loader):
    probe = Probe().cuda()
    probe.load_state_dict(torch.load("probe.pt", map_location="cpu"))
    probe.eval()
    right = 0
    for features, labels in loader:
        right += (probe(features.cuda()).argmax(1) == labels.cuda()).sum().item()  # note: GPU201
    return right


def validate_sentences(loader):
    words = Words().cuda()
    words.load_state_dict(torch.load("words.pt", map_location="cpu"))
    words.eval()
    right = 0
    for tokens, labels in loader:
        right += (words(tokens.cuda()).argmax(1) == labels.cuda()).sum().item()  # expect: GPU201
    return right


class Agent:
    def __init__(self):
        self.net = nn.Sequential(
            nn.Conv2d(4, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.Flatten(), nn.Linear(512, 6)
        ).cuda()
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def value(self, frames):
        return self.net(frames.cuda()).max(1)[0].detach().cpu().numpy()  # note: GPU201

    def fit(self, frames, goals):
        loss = nn.functional.mse_loss(self.net(frames.cuda()).max(1)[0], goals.cuda())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def play(env, memory):
    agent, frames = Agent(), env.reset()
    while True:
        values = agent.value(frames)
        frames, goals = env.step(values)
        agent.fit(frames, goals)
        memory.append(values)
