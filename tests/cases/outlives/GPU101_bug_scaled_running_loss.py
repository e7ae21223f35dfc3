import torch
from torch.amp import GradScaler, autocast


def train_epoch(model, loader, optimizer, loss_fn, scaler: GradScaler, device, max_norm=1.0):
    model.train()
    running_loss = 0.0
    n = 0
    for images, masks in loader:
        images = images.to(device, non_blocking=True)
        masks = masks.to(device, non_blocking=True)
        with autocast("cuda", dtype=torch.float16):
            loss = loss_fn(model(images), masks)
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        scaler.step(optimizer)
        scaler.update()
        running_loss += loss * images.size(0)  # expect: GPU101
        n += images.size(0)
    return running_loss / n
