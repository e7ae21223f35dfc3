"""The helper runs the model for both; the one who evaluates is called under no_grad by another."""
# file: engine/loops.py
import torch

from engine.passes import forward_model


def train_one_epoch(model, loader, optimizer, device):
    model.train()
    for batch in loader:
        optimizer.zero_grad(set_to_none=True)
        losses, _ = forward_model(model, batch, device)
        sum(losses.values()).backward()
        optimizer.step()


def evaluate(model, loader, device):
    model.eval()
    hits = torch.zeros((), dtype=torch.long)
    for batch in loader:
        _, logits = forward_model(model, batch, device)
        hits += (logits.argmax(1).cpu() == batch["species"]).sum()
    return hits.item() / len(loader.dataset)


def main(cfg, build, train_loader, val_loader):
    device = torch.device("cuda", cfg.gpu)
    model = build(cfg).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    for _ in range(cfg.epochs):
        train_one_epoch(model, train_loader, optimizer, device)
        with torch.inference_mode():
            print(evaluate(model, val_loader, device))
# file: engine/passes.py
import torch.nn.functional as F


def forward_model(model, batch, device):
    wave = batch["audio"].to(device, non_blocking=True)
    species = batch["species"].to(device, non_blocking=True)
    logits = model(wave)
    return {"ce": F.cross_entropy(logits, species, label_smoothing=0.1)}, logits
