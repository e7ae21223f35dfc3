"""A script that measures how much memory each size of a batch needs: it starts each from an empty cache."""

import sys

import torch
from transformers import AutoModelForCausalLM


def main(name):
    model = AutoModelForCausalLM.from_pretrained(name).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for size in (1, 2, 4, 8, 16, 32):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        ids = torch.randint(1000, (size, 1024), device="cuda")
        model(ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        print(size, torch.cuda.max_memory_reserved() >> 20, "MiB")


if __name__ == "__main__":
    main(sys.argv[1])
