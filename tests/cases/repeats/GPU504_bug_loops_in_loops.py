"""Elements that are read in a loop within another one of the step are many; of one dimension nobody knows how many they are."""

import torch
from torch import nn

net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10)).cuda()
optimizer = torch.optim.Adam(net.parameters())
WORDS = ["the", "a", "of"]


def spelled(ids):
    return " ".join(WORDS[index] for index in ids if index != 0)  # expect: GPU504


@torch.no_grad()
def validate(loader):
    net.eval()
    said = []
    for features, lengths in loader:
        best = net(features.cuda()).argmax(-1)
        for row in best:
            said.append(spelled(row))
        scores = best.float().mean(1)
        said.append([score.item() for score in scores])  # note: GPU504
        for place in range(scores.size(0)):
            if scores[place] < 0.5:  # note: GPU504
                break
        print([scores[place].item() for place in range(3)])
    return said


def smooth(scores, mask):
    parts = []
    batch, length, _ = scores.size()
    for row in range(batch):
        for column in range(length):
            parts.append(torch.masked_select(scores[row, column], mask[row, column]).sum())  # expect: GPU504
    return torch.stack(parts).mean()


def padding(rows):
    return torch.stack([torch.BoolTensor([word == 0 for word in row]) for row in rows])  # expect: GPU504


def train(loader):
    for features, targets in loader:
        features, targets = features.cuda(), targets.cuda()
        scores = net(features)
        loss = smooth(scores, scores > 0.1) + scores[padding(targets).cuda()].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def advantages(rewards, ended, states):
    """The network runs in some rounds only: they are no steps."""
    total, found = 0.0, []
    for at in reversed(range(rewards.size(0))):
        if ended[at]:  # low: GPU504
            total = net(states[at]).sum()
        total = rewards[at] + 0.9 * total
        found.append(total)
    return torch.stack(found)


def learn(rewards, ended, states):
    for _ in range(100):
        with torch.no_grad():
            wanted = advantages(rewards.cuda(), ended.cuda(), states.cuda())
        loss = (net(states.cuda()).sum(1) - wanted).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
