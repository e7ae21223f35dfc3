"""GPT-2 under bfloat16 autocast with scaled-dot-product attention, accumulated over two micro batches, clipped."""

import argparse

import torch
from transformers import GPT2Config, GPT2LMHeadModel


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=6)
    args = parser.parse_args()
    device = torch.device("cuda", 0)
    model = GPT2LMHeadModel(GPT2Config(attn_implementation="sdpa")).to(device)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)
    for step in range(args.steps):
        tokens = torch.randint(0, 50257, (args.batch, args.length), device=device)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(input_ids=tokens, labels=tokens).loss / 2
        loss.backward()
        if step % 2 == 1:
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            print(step, loss.item(), norm.item())


if __name__ == "__main__":
    main()
