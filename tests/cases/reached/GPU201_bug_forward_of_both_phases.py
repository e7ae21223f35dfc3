"""One forward for both phases, of which one goes backward."""

from torch.nn.functional import cross_entropy


def one_epoch(model, loader, optimizer, train):
    if train:
        model.train()
    else:
        model.eval()
    total = 0
    for x, y in loader:
        loss = cross_entropy(model(x.cuda()), y.cuda())  # expect: GPU201
        if train:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total
