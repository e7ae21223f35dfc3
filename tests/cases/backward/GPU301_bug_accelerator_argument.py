import torch
from accelerate import Accelerator


def train(model, loader, lr, epochs):
    acc = Accelerator()
    opt = torch.optim.AdamW(model.parameters(), lr=lr)
    model, opt, loader = acc.prepare(model, opt, loader)
    for _ in range(epochs):
        for batch in loader:
            with acc.accumulate(model):
                loss = model(**batch).loss
                acc.backward(loss, retain_graph=True)  # expect: GPU301
                opt.step()
                opt.zero_grad()
