import torch
from torch import nn


def train(model, train_loader, epochs, device):
    opt = torch.optim.Adam(model.parameters())
    crit = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        for x, y in train_loader:
            opt.zero_grad()
            loss = crit(model(x.to(device)), y.to(device))
            loss.backward()
            opt.step()
            torch.cuda.empty_cache()  # expect: GPU501
        print(epoch, loss.item())
