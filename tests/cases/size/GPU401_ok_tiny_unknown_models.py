import torch


def train(model, criterion, loader, optimizer, device):
    for i, (inputs, targets) in enumerate(loader):
        inputs, targets = inputs.to(device), targets.to(device)
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 10 == 0:
            print(i, loss.item())


@torch.no_grad()
def test(model, criterion, loader, device):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        outputs = model(inputs.to(device))
        total += criterion(outputs, targets.to(device)).item()
    return total / len(loader)
