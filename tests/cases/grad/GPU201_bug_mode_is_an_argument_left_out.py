"""The same loss; the validation leaves the argument out, whose default is to train."""
# file: train.py
import torch

from losses import compute_loss


def validate(params, model, loader):
    model.eval()
    total, frames = 0.0, 0
    for batch in loader:
        loss, n = compute_loss(params, model, batch)  # expect: GPU201@v
        total += loss.item()
        frames += n
    return total / frames


def train(params, model, loader, valid_loader):
    model.to(params.device)
    optimizer = torch.optim.Adam(model.parameters(), params.lr)
    for step, batch in enumerate(loader):
        model.train()
        loss, _ = compute_loss(params, model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % params.valid_interval == 0:
            print(step, validate(params, model, valid_loader))


def main(params, build, loaders):
    params.device = torch.device("cuda", 0)
    train(params, build(params), *loaders)
# file: losses.py
import torch
import torch.nn.functional as F


def compute_loss(params, model, batch, is_training=True):
    feature = batch["inputs"].to(params.device)
    target = batch["targets"].to(params.device)
    with torch.set_grad_enabled(is_training):
        out = model(feature)  # expect: GPU201@v
        loss = F.cross_entropy(out.flatten(0, 1), target.flatten(), reduction="sum")
    return loss, batch["lengths"].sum().item()
