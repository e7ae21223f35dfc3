"""`no_grad` is entered by hand for the rest of the program."""

import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def main(name, path):
    words = AutoTokenizer.from_pretrained(name)
    model = AutoModelForCausalLM.from_pretrained(name).cuda().eval()
    torch.no_grad().__enter__()
    total, count = 0.0, 0
    for line in open(path):
        ids = words(line, return_tensors="pt").input_ids.cuda()
        loss = model(ids, labels=ids).loss
        total += loss.item() * ids.numel()
        count += ids.numel()
    print(total / count)


if __name__ == "__main__":
    main(*sys.argv[1:])
