import torch
from torchmetrics import Accuracy, MeanMetric


@torch.no_grad()
def evaluate(model, loader, device, n_cls):
    model.eval()
    acc = Accuracy("multiclass", num_classes=n_cls).to(device)
    mean = MeanMetric().to(device)
    conf = torch.zeros(n_cls, n_cls, device=device)
    for x, y in loader:
        y = y.to(device)
        out = model(x.to(device))
        acc.update(out, y)
        mean.update(torch.nn.functional.cross_entropy(out, y))
        p = out.argmax(1)
        conf += torch.bincount(y * n_cls + p, minlength=n_cls**2).view(n_cls, n_cls)
    return acc.compute().item(), mean.compute().item(), conf.cpu()
