import torch
import torch.nn.functional as F


def pgd(model, x, y, eps=8 / 255, alpha=2 / 255, steps=10):
    delta = torch.zeros_like(x).uniform_(-eps, eps)
    for _ in range(steps):
        with torch.enable_grad():
            delta.requires_grad_(True)
            loss = F.cross_entropy(model((x + delta).clamp(0, 1)), y)
            (grad,) = torch.autograd.grad(loss, delta)
        delta = (delta.detach() + alpha * grad.sign()).clamp(-eps, eps)
    return (x + delta).clamp(0, 1)


@torch.no_grad()
def robust_accuracy(model, loader):
    model.eval()
    ok = n = 0
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        adv = pgd(model, x, y)
        ok += (model(adv).argmax(1) == y).sum().item()
        n += len(y)
    return ok / n
