"""Caches that look first and store later; and an object's own cache that keeps graphs."""

import torch
from transformers import AutoModel, AutoTokenizer

bert = AutoModel.from_pretrained("bert-base-uncased").cuda().eval()
tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
VECTORS = {}
MEANS = {}


def vector(text):
    if text in VECTORS:
        return VECTORS[text]
    with torch.no_grad():
        tokens = tokenizer(text, return_tensors="pt").to("cuda")
        found = bert(**tokens).last_hidden_state
    VECTORS[text] = found  # expect: GPU106
    return found


@torch.no_grad()
def mean(text):
    found = MEANS.get(text)
    if found is None:
        found = bert(**tokenizer(text, return_tensors="pt").to("cuda")).last_hidden_state
        MEANS[text] = found  # expect: GPU106
    return found


class Prompts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = AutoModel.from_pretrained("bert-base-uncased")
        self.known = {}

    def encode(self, text):
        if text not in self.known:
            self.known[text] = self.encoder(**tokenizer(text, return_tensors="pt")).last_hidden_state  # expect: GPU106
        return self.known[text]
