"""A helper whose own helpers switch grad off, one of them with a name as networks have it."""

import torch
from torch import nn


def zero_shot_classifier(model, texts):
    with torch.no_grad():
        return torch.stack([model.encode_text(text).mean(0) for text in texts], 1)


def run(model, weights, loader):
    right = 0
    with torch.no_grad():
        for images, labels in loader:
            scores = model.encode_image(images.cuda()) @ weights
            right += (scores.argmax(1).cpu() == labels).sum().item()
    return right


def zero_shot_eval(model, loader, texts):
    classifier = zero_shot_classifier(model, texts)
    return {"right": run(model, classifier, loader)}


def evaluate(model: nn.Module, loader, texts, log):
    model.eval()
    found = zero_shot_eval(model, loader, texts)
    log(found)
    return found
