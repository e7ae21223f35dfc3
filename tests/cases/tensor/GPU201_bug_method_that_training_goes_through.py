"""The network's class is not seen, but the training's backward goes through what its method returns: no guard in there."""

import torch
from ocr.registry import build_reader


def fit(cfg, train_lines, dev_lines):
    reader = build_reader(cfg).to("cuda")
    optimizer = torch.optim.Adam(reader.parameters(), lr=cfg.lr)
    for epoch in range(cfg.epochs):
        reader.train()
        for crops, texts in train_lines:
            loss = reader.forward_pass(crops.to("cuda"), texts)["loss"]
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, error_rate(reader, dev_lines))


def error_rate(reader, dev_lines):
    reader.eval()
    missed, seen = 0.0, 0
    for crops, texts in dev_lines:
        outcome = reader.forward_pass(crops.to("cuda"), texts)  # expect: GPU201
        missed += outcome["loss"].item() * len(texts)
        seen += len(texts)
    return missed / seen
