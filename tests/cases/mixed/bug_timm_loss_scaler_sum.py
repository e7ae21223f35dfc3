import torch


def train_one_epoch(model, criterion, loader, optimizer, device, loss_scaler, max_norm=None):
    model.train()
    total = 0.0
    for samples, targets in loader:
        samples, targets = samples.to(device), targets.to(device)
        with torch.autocast("cuda"):
            loss = criterion(model(samples), targets)
        optimizer.zero_grad()
        loss_scaler(loss, optimizer, clip_grad=max_norm, parameters=model.parameters())
        total += loss  # note: GPU101
    return total / len(loader)
