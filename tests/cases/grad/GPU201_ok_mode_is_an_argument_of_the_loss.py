"""The loss of another file switches grad by its argument; the validation says that it does not train."""
# file: train.py
import torch

from losses import compute_loss


def validate(params, model, loader):
    model.eval()
    total, frames = 0.0, 0
    for batch in loader:
        loss, n = compute_loss(params, model, batch, is_training=False)
        assert loss.requires_grad is False
        total += loss.item()
        frames += n
    return total / frames


def train(params, model, loader, valid_loader):
    model.to(params.device)
    optimizer = torch.optim.Adam(model.parameters(), params.lr)
    for step, batch in enumerate(loader):
        model.train()
        loss, _ = compute_loss(params, model, batch, is_training=True)
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


def compute_loss(params, model, batch, is_training):
    feature = batch["inputs"].to(params.device)
    target = batch["targets"].to(params.device)
    with torch.set_grad_enabled(is_training):
        out = model(feature)
        loss = F.cross_entropy(out.flatten(0, 1), target.flatten(), reduction="sum")
    return loss, batch["lengths"].sum().item()
