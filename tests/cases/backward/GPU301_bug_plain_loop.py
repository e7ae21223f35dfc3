import torch
from torch import nn, optim


def fit(model, loader, epochs):
    model.cuda()
    loss_fn = nn.CrossEntropyLoss()
    optimizer = optim.SGD(model.parameters(), lr=1e-2)
    for e in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(x.cuda()), y.cuda())
            loss.backward(retain_graph=True)  # expect: GPU301
            optimizer.step()
        print("epoch", e, loss.item())
