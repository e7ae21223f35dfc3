import torch
from accelerate import Accelerator


def evaluate(accelerator: Accelerator, model, loader, batch_size):
    model.eval()
    losses = []
    for batch in loader:
        with torch.no_grad():
            outputs = model(**batch)
        loss = outputs.loss
        losses.append(accelerator.gather_for_metrics(loss.repeat(batch_size)))  # maybe: GPU102
    return torch.exp(torch.cat(losses).mean()).item()


def train(accelerator, model, loader, opt):
    total = 0.0
    for batch in loader:
        loss = model(**batch).loss
        accelerator.backward(loss)
        opt.step()
        opt.zero_grad()
        total += accelerator.gather(loss.detach()).mean().item()
    return total / len(loader)
