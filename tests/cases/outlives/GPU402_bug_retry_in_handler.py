import torch
import torch.nn.functional as F


def train_step(model, opt, x, y):
    opt.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    opt.step()
    return loss.item()


def train(model, opt, loader):
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        try:
            loss = train_step(model, opt, x, y)
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()  # expect: GPU402
            half = x.size(0) // 2
            loss = train_step(model, opt, x[:half], y[:half])
            loss += train_step(model, opt, x[half:], y[half:])
        print(loss)
