"""One function for three things, by a word; only one of them goes backward, and grad is on for all."""

import torch
from torch import nn


def run(to_do, net, loader, optimizer=None):
    net.train() if to_do == "train" else net.eval()
    total, out = 0.0, []
    for wave, label in loader:
        scores = net(wave.cuda())  # expect: GPU201
        if to_do == "forward":
            out.append(scores.argmax(-1).cpu())
            continue
        loss = nn.functional.cross_entropy(scores, label.cuda())
        if to_do == "train":
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return torch.cat(out) if to_do == "forward" else total / len(loader)


def main(build, parts, epochs=24):
    net = build().cuda()
    optimizer = torch.optim.RMSprop(net.parameters(), 1e-3)
    for epoch in range(epochs):
        print(epoch, run("train", net, parts["train"], optimizer), run("valid", net, parts["dev"]))
    torch.save(run("forward", net, parts["eval"]), "labels.pt")
