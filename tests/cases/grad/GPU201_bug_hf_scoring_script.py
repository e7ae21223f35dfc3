import sys

import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

name = sys.argv[1]
tok = AutoTokenizer.from_pretrained(name)
mlm = AutoModelForMaskedLM.from_pretrained(name).to("cuda").eval()


def fill(sentences):
    answers = []
    for s in sentences:
        enc = tok(s, return_tensors="pt").to("cuda")
        logits = mlm(**enc).logits  # expect: GPU201  # maybe: GPU401
        pos = (enc.input_ids[0] == tok.mask_token_id).nonzero()[0, 0]
        answers.append(tok.decode(logits[0, pos].argmax().item()))  # maybe: GPU401
    return answers


if __name__ == "__main__":
    for line in fill(open(sys.argv[2]).read().splitlines()):
        print(line)
