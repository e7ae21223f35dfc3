"""A test, a bound or the key of a sort that reads what is on the host waits for nothing; and what has been taken there as one is a list."""

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
        best, total = scores.argmax(1).tolist(), scores.sum(0).cpu()
        order = sorted(range(len(total)), key=lambda word: total[word])
        wrong = [row for row in range(len(labels)) if best[row] != labels[row]]
        for row, text in enumerate(texts):
            print(order[0], wrong, text[: best[row]])
        for part in scores:
            if part is None or len(part) == 0:
                print(part.shape)
        means = torch.tensor([scores.mean(), scores.std()])
        print(means, torch.tensor([row.item() for row in total]))


def version():
    return [int(part) for part in torch.__version__.split(".")[:2]]
