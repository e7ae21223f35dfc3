import torch
import torch.nn.functional as F


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
