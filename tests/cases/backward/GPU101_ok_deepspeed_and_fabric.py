import deepspeed
import lightning as L
import torch
from torch.nn import functional as F


def with_deepspeed(net, dataset, args):
    engine, _, loader, _ = deepspeed.initialize(args=args, model=net, training_data=dataset)
    total = 0.0
    for ids, labels in loader:
        loss = engine(ids.to(engine.device), labels.to(engine.device))
        engine.backward(loss)
        engine.step()
        total += loss.item()
    return total


def with_fabric(net, loader, epochs):
    fabric = L.Fabric(accelerator="cuda")
    fabric.launch()
    model, opt = fabric.setup(net, torch.optim.Adam(net.parameters()))
    for ep in range(epochs):
        seen = torch.zeros((), device=fabric.device)
        for x, y in fabric.setup_dataloaders(loader):
            nll = F.cross_entropy(model(x), y)
            opt.zero_grad()
            fabric.backward(nll)
            opt.step()
            seen += nll.detach()
        fabric.log("loss", seen.item() / len(loader), ep)
