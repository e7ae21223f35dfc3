import torch
import torch.nn.functional as F


def fit(model, loader):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    dims = (0, 1)
    columns, sums, norms = [], [], []
    for x, y in loader:
        out = model(x)
        loss = F.mse_loss(out, torch.zeros_like(out))
        opt.zero_grad()
        loss.backward()
        opt.step()
        columns.append(torch.mean(out, axis=1))  # expect: GPU101
        sums.append(out.unsqueeze(0).sum(dims))  # expect: GPU101
        norms.append(loss.expand(3))  # expect: GPU101
    print(len(columns), sums, norms)


def fit_with_numbers(model, loader):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    losses, sizes = [], []
    for x, y in loader:
        out = model(x)
        loss = F.mse_loss(out, torch.zeros_like(out))
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss)  # expect: GPU101
        sizes.append(out.norm(p=2))  # expect: GPU101
    mean = sum(losses) / len(losses)
    print(f"{mean:.4f}, at most {max(sizes):.2f}")
