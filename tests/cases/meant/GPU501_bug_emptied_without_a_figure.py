"""The training empties the cache in every step and reads no figure but one of what was allocated, at its end."""

import sys

import torch
from transformers import AutoModelForCausalLM


def main(name, batches):
    model = AutoModelForCausalLM.from_pretrained(name).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for ids in batches:
        torch.cuda.empty_cache()  # expect: GPU501
        ids = ids.cuda()
        model(ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print(torch.cuda.max_memory_allocated() >> 20, "MiB")


if __name__ == "__main__":
    main(sys.argv[1], torch.load(sys.argv[2], map_location="cpu").split(8))
