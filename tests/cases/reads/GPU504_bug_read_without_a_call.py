"""What a test, a bound of a slice or the key of a sort reads of a tensor on a GPU is read one by one as `.item()` is; on the host it costs nothing."""

import torch
from torch import nn

model = nn.Linear(8, 100).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(loader, texts):
    for inputs, labels in loader:
        scores = model(inputs.cuda())
        loss = nn.functional.cross_entropy(scores, labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        best, total = scores.max(1)[1], scores.sum(0)
        order = sorted(range(len(total)), key=lambda word: total[word].item())  # note: GPU504
        wrong = [row for row in range(len(labels)) if best[row] != labels[row]]  # note: GPU504
        for row, text in enumerate(texts):
            print(order[0], wrong, text[: best[row]])  # note: GPU504
        for row in range(len(labels)):
            if labels[row] == 2:
                print(row)
        for row in range(4):
            if best[row]:
                print(row)


def reset(states, done):
    for index in range(len(done)):
        if done[index]:  # note: GPU504
            states[index] = 0


def act(states, steps):
    for _ in range(steps):
        values = model(states)
        reset(states, (values.cuda() > 0).any(1))
        loss = values.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def discounted(rewards, steps):
    for _ in range(steps):
        values = model(rewards.cuda())  # low: GPU505
        total, totals = 0.0, []
        for value in torch.flip(values, [0]):
            total = 0.99 * total + value.sum()
            totals.append([total])
        wanted = torch.tensor(totals).cuda()  # note: GPU504
        few = torch.tensor([values.mean(), values.std()])
        loss = nn.functional.mse_loss(values.sum(1), wanted[:, 0]) + few.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
