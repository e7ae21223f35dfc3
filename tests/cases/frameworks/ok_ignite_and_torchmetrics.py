import torch
from ignite.engine import Engine, Events
from ignite.metrics import RunningAverage
from torch import nn
from torchmetrics import MeanMetric


def build(model, opt, device):
    crit = nn.CrossEntropyLoss()

    def update(engine, batch):
        model.train()
        x, y = (t.to(device) for t in batch)
        loss = crit(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        return loss

    trainer = Engine(update)
    RunningAverage(output_transform=lambda out: out).attach(trainer, "loss")

    @trainer.on(Events.EPOCH_COMPLETED)
    def show(engine):
        print(engine.state.metrics["loss"])

    return trainer


def loop(model, loader, opt, device):
    mean = MeanMetric().to(device)
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        opt.zero_grad()
        loss.backward()
        opt.step()
        mean.update(loss)
    return mean.compute().item()
