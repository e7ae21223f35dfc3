"""Python asks a tensor for a number, or whether it holds, in many places without a call of its own: as a size, in a text, as a key that is
compared, for how many places a mask picks, and within a function that is called for each."""

import torch
from torch import nn

model = nn.Linear(8, 100).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(loader, words):
    for inputs, lengths, labels in loader:
        lengths, labels = lengths.cuda(), labels.cuda()
        scores = model(inputs.cuda())
        loss = nn.functional.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        best = scores.argmax(1)
        pads = [torch.zeros(one, 8, device="cuda") for one in lengths]  # note: GPU504
        order = sorted(range(len(best)), key=lambda row: scores[row, 0])  # note: GPU504
        kept = [row[row > 0] for row in scores]  # note: GPU504
        found = list(map(int, best))  # note: GPU504
        for row, word in enumerate(words):
            print(f"{word}: {best[row]}")  # note: GPU504
        counts = torch.zeros(100, 100)
        for one, other in zip(labels.view(-1), best.view(-1)):
            counts[one, other] += 1  # note: GPU504
        of_class = [(best == label).sum().item() for label in range(100)]  # note: GPU504
        alike = sum(torch.equal(one, other) for one, other in zip(best, labels))  # note: GPU504
        named = [spelled(one) for one in best]  # note: GPU504
        losses = [nn.functional.mse_loss(scores[row], scores[0]) for row in range(len(scores))]
        total = sum(one.item() for one in losses)  # note: GPU504
        print(pads, order, kept, found, counts, of_class, alike, named, total)


def spelled(one):
    return "abc"[one.item() % 3]


def scored(trees):
    for batch in trees:
        scores = model(torch.stack([tree.seen for tree in batch]).cuda()).squeeze(1)
        loss = scores.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        start = right = 0
        for tree in batch:
            part = scores.narrow(0, start, tree.size)
            start += tree.size
            right += part.max().item() > 0  # note: GPU504
        print(right)
