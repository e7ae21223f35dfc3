import torch
import torch.nn.functional as F


def influence(model, params, test_batch, train_batch, damping=0.01):
    model.eval()
    x, y = test_batch
    g_test = torch.autograd.grad(F.cross_entropy(model(x.cuda()), y.cuda()), params)
    x, y = train_batch
    g_train = torch.autograd.grad(F.cross_entropy(model(x.cuda()), y.cuda()), params)
    return sum((a * b).sum() for a, b in zip(g_test, g_train)).item() / damping


def integrated_gradients(model, x, target, steps=50):
    model.eval()
    x = x.cuda()
    total = torch.zeros_like(x)
    for k in range(1, steps + 1):
        xi = (x * k / steps).requires_grad_(True)
        out = model(xi)[:, target].sum()
        total += torch.autograd.grad(out, xi)[0]
    return (total / steps * x).cpu()
