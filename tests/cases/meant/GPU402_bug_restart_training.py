import argparse
import logging

import torch
from torch import nn, optim


def train_model(model, loader, epochs, device):
    opt = optim.RMSprop(model.parameters(), lr=1e-5)
    for _ in range(epochs):
        for image, mask in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(image.to(device)), mask.to(device))
            opt.zero_grad()
            loss.backward()
            opt.step()


def main(make_model, make_loader):
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()
    model = make_model().cuda()
    try:
        train_model(model, make_loader(), args.epochs, "cuda")
    except torch.cuda.OutOfMemoryError:
        logging.error("Detected OutOfMemoryError! Enabling checkpointing to reduce memory usage.")
        torch.cuda.empty_cache()  # expect: GPU402
        model.use_checkpointing()
        train_model(model, make_loader(), args.epochs, "cuda")
