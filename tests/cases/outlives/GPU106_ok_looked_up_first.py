"""Look first, store later: on the host, with a bound, or emptied; an object's few prompts without a graph."""

import torch
from transformers import AutoModel, AutoTokenizer

bert = AutoModel.from_pretrained("bert-base-uncased").cuda().eval()
tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
VECTORS = {}
RECENT = {}


@torch.no_grad()
def vector(text):
    if text in VECTORS:
        return VECTORS[text]
    found = bert(**tokenizer(text, return_tensors="pt").to("cuda")).last_hidden_state
    VECTORS[text] = found.cpu()
    return VECTORS[text]


@torch.no_grad()
def recent(text):
    found = RECENT.get(text)
    if found is None:
        if len(RECENT) > 100:
            RECENT.clear()
        found = bert(**tokenizer(text, return_tensors="pt").to("cuda")).last_hidden_state
        RECENT[text] = found
    return found


class Prompts:
    def __init__(self, encoder):
        self.encoder = encoder.cuda().eval()
        self.known = {}
        self.passed = {}

    @torch.no_grad()
    def encode(self, text):
        if text not in self.known:
            self.known[text] = self.encoder(tokenizer(text)["input_ids"].cuda())
        return self.known[text]

    def step(self, text, optimizer):
        if text in self.passed:
            return self.passed[text]
        self.passed[text] = self.encoder(tokenizer(text)["input_ids"].cuda()).mean().item()  # maybe: GPU201
        return self.passed[text]
