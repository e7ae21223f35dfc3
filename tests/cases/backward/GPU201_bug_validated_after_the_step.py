"""One round trains on the whole graph and then looks how good the network is, in eval mode."""

import torch
import torch.nn.functional as F
from torch import nn


def score(out, labels):
    return (out.argmax(1) == labels).float().mean()


def one_round(net: nn.Module, optimizer, x, labels, train, held_out):
    net.train()
    optimizer.zero_grad()
    out = net(x.cuda())
    loss = F.cross_entropy(out[train], labels[train])
    loss.backward()
    optimizer.step()

    net.eval()
    out = net(x.cuda())  # expect: GPU201
    checked = F.cross_entropy(out[held_out], labels[held_out])
    print(loss.item(), checked.item(), score(out[held_out], labels[held_out]).item())


def fit(net: nn.Module, optimizer, x, labels, x_test, labels_test, epochs):
    for epoch in range(epochs):
        net.train()
        loss = F.cross_entropy(net(x.cuda()), labels)  # low: GPU505
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        net.eval()
        guess = net(x_test.cuda())  # expect: GPU201  # low: GPU505
        print(epoch, loss.item(), score(guess, labels_test).item())


def epochs_of_batches(net: nn.Module, optimizer, loader, x_test, epochs):
    for _ in range(epochs):
        net.train()
        for x, labels in loader:
            loss = F.cross_entropy(net(x.cuda()), labels.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        found = net(x_test.cuda())  # expect: GPU201  # low: GPU505
        kept = found.cpu().detach().numpy()
        print(kept.mean())
