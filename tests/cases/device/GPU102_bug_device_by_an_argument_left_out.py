"""The caller leaves the device out, whose default is the GPU, and saves the whole from there."""

import numpy as np
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
            found.append(states.to(output_device))  # expect: GPU102
        return torch.cat(found)


def main(name, texts, out):
    embedder = Embedder(name)
    np.save(out, embedder.embed(texts).cpu().numpy())
