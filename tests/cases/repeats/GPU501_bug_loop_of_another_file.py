"""The step empties the cache; the loop that runs it for every batch stands in another file."""
# file: step.py
import torch


def step(model, optimizer, inputs):
    optimizer.zero_grad()
    loss = model(inputs.cuda()).mean()
    loss.backward()
    optimizer.step()
    torch.cuda.empty_cache()  # expect: GPU501
# file: train.py
from step import step


def main(model, optimizer, loader):
    for inputs in loader:
        step(model, optimizer, inputs)
