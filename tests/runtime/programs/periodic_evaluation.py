# Every tenth step an evaluation that keeps numbers and lets go of its outputs.
import torch
from setting import batch, learn, training


def evaluate(model):
    model.eval()
    right, outputs = 0, []
    with torch.no_grad():
        for _ in range(8):
            x, y = batch()
            out = model(x)
            right += (out.argmax(-1) == y).sum().item()
            outputs.append(out.cpu())
    model.train()
    return right / 128


model, optimizer = training()
accuracy = []
for step in range(1000):
    learn(model, optimizer)
    if step % 10 == 9:
        accuracy.append(evaluate(model))
