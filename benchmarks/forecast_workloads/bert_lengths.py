"""BERT for classification on batches of varying lengths, padded by a collate function, with a schedule."""

import argparse
import random

import torch
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification


def collate(items: list[tuple[list[int], int]]) -> dict[str, torch.Tensor]:
    longest = max(len(tokens) for tokens, _ in items)
    ids = torch.zeros(len(items), longest, dtype=torch.long)
    mask = torch.zeros(len(items), longest, dtype=torch.long)
    for row, (tokens, _) in enumerate(items):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        mask[row, : len(tokens)] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([label for _, label in items])}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=12)
    args = parser.parse_args()
    chance = random.Random(0)
    data = [
        ([chance.randrange(1000, 30000) for _ in range(chance.randrange(24, 384))], chance.randrange(2))
        for _ in range(args.batch * args.steps)
    ]
    loader = DataLoader(data, batch_size=args.batch, collate_fn=collate)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = BertForSequenceClassification(BertConfig(num_labels=2)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=10)
    model.train()
    total = 0.0
    for batch in loader:
        batch = {name: values.to(device) for name, values in batch.items()}
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        total += loss.item()
    print(total / len(loader))


if __name__ == "__main__":
    main()
