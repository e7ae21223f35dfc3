"""An entry that is None when a dict is made is given labels later: what asks for them runs. Options that are printed are no network."""

import torch
from torch import nn

model = nn.Linear(8, 100).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def gathered(rows):
    batch = {"seen": torch.stack([row.seen for row in rows]), "labels": None}
    return with_labels(batch, rows)


def with_labels(batch, rows):
    if rows[0].label is not None:
        batch["labels"] = torch.tensor([row.label for row in rows])
    return batch


def train(args, loader):
    print(args.train)
    for rows in loader:
        batch = gathered(rows)
        scores = model(batch["seen"].cuda())
        loss = scores.mean()
        if batch["labels"] is not None:
            loss = nn.functional.cross_entropy(scores, batch["labels"].cuda())
            print([args.words[one] for one in scores.argmax(1)])  # low: GPU504
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
