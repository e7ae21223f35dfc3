"""T5 (base) in single precision with Adafactor-free AdamW and label smoothing."""

import argparse

import torch
from transformers import T5Config, T5ForConditionalGeneration


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=4)
    args = parser.parse_args()
    config = T5Config(
        d_model=768,
        d_ff=3072,
        d_kv=64,
        num_layers=12,
        num_heads=12,
        vocab_size=32128,
        decoder_start_token_id=0,
    )
    model = T5ForConditionalGeneration(config).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    model.train()
    for step in range(args.steps):
        source = torch.randint(0, 32000, (args.batch, 384), device="cuda")
        target = torch.randint(0, 32000, (args.batch, 96), device="cuda")
        logits = model(input_ids=source, labels=target).logits
        loss = criterion(logits.view(-1, logits.size(-1)), target.view(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item())


if __name__ == "__main__":
    main()
