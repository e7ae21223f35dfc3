import torch
import torch.nn.functional as F


def train(model, loader, optimizer, epoch, device):
    model.train()
    correct = 0
    hits = torch.zeros(1, device=device)
    for data, target in loader:
        data, target = data.to(device), target.to(device)
        output = model(data)
        loss = F.cross_entropy(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        pred = output.argmax(dim=1)
        correct += (pred == target).sum()
        hits += pred.eq(target).float().mean()
    print("epoch {} acc {:.2f}% {:.2f}%".format(epoch, 100.0 * correct / len(loader.dataset), hits.item() / len(loader)))
