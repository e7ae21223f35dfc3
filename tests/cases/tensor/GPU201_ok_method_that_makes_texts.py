"""The network's class is not seen; what the evaluation calls makes token ids of strings, the forward stands under no_grad."""

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
        lengths = [len(ids) for ids in reader.alphabet.encode(texts)]
        with torch.no_grad():
            outcome = reader.forward_pass(crops.to("cuda"), texts)
        missed += outcome["loss"].item() * sum(lengths)
        seen += sum(lengths)
    return missed / seen
