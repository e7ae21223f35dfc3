"""`no_grad` is made, put under a name, and never entered."""

import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def main(name, path):
    words = AutoTokenizer.from_pretrained(name)
    model = AutoModelForCausalLM.from_pretrained(name).cuda().eval()
    guard = torch.no_grad()  # maybe: GPU204
    total, count = 0.0, 0
    for line in open(path):
        ids = words(line, return_tensors="pt").input_ids.cuda()
        loss = model(ids, labels=ids).loss  # expect: GPU201
        total += loss.item() * ids.numel()
        count += ids.numel()
    print(total / count)
    del guard


if __name__ == "__main__":
    main(*sys.argv[1:])
