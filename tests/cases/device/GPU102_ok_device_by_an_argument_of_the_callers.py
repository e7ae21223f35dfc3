"""Where the vectors go is the caller's choice, and every caller in the program chooses the host."""

import torch
from transformers import AutoModel


class Embedder:
    def __init__(self, name):
        self.model = AutoModel.from_pretrained(name).eval().cuda()

    @torch.no_grad()
    def embed(self, batches, output_device="cuda"):
        found = []
        for ids in batches:
            states = self.model(ids.cuda()).last_hidden_state
            found.append(states.to(output_device))
        return torch.cat(found)


def main(name, texts, out):
    embedder = Embedder(name)
    torch.save(embedder.embed(texts, output_device="cpu"), out)
    print(embedder.embed(texts[:2], "cpu").shape)
