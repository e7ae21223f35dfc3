"""What the steps go through stands in an object that the function is given, and may have graphs: each round of training
goes through them anew."""

import torch


def distill(pupil, guide, criterion, optimizer):
    codes = guide.codes if len(guide.codes) < len(pupil.codes) else pupil.codes
    for code, label in zip(codes, guide.labels):
        optimizer.zero_grad()
        picture = guide.decoder(code)
        loss = criterion(pupil.network(picture), label)
        loss.backward(retain_graph=True)
        optimizer.step()
