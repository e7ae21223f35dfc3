import torch


def run_epoch(model, loader, optimizer, criterion, device):
    total_loss = torch.tensor(0.0, device=device)
    for step, batch in enumerate(loader):
        batch = batch.to(device)
        loss = criterion(model(batch), batch.y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total_loss += loss.detach()
    return (total_loss / (step + 1)).item()
