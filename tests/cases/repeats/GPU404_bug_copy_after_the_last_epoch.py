"""The best weights wait on the GPU through the training; the last ones are copied when it is over, to be saved."""

import copy

import torch


def fit(model, loader, epochs, train_epoch, score):
    model.cuda()
    best, kept = 0.0, {}
    for epoch in range(epochs):
        train_epoch(model, loader)
        if score(model) > best:
            kept["best"] = copy.deepcopy(model.state_dict())  # low: GPU404
    kept["last"] = copy.deepcopy(model.state_dict())  # low: GPU404
    torch.save(kept, "model.pt")
