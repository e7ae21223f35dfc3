"""A text encoder whose constructor freezes it, asked through a method: no graph is built, whatever the grad mode."""

# file: encoders.py
from torch import nn
from transformers import AutoModel, AutoTokenizer


class TextEncoder(nn.Module):
    def __init__(self, version):
        super().__init__()
        self.tokenizer = AutoTokenizer.from_pretrained(version)
        self.transformer = AutoModel.from_pretrained(version)
        self.freeze()

    def freeze(self):
        self.transformer.eval()
        for param in self.parameters():
            param.requires_grad = False

    def forward(self, texts):
        ids = self.tokenizer(texts, padding=True, return_tensors="pt")["input_ids"]
        return self.transformer(ids.to("cuda")).last_hidden_state

    def encode(self, texts):
        return self(texts)


# file: extract.py
import numpy as np
from encoders import TextEncoder


def main(batches):
    encoder = TextEncoder("some/version").to("cuda")
    encoder.eval()
    for number, texts in enumerate(batches):
        features = encoder.encode(texts)
        np.save(f"{number}.npy", features.detach().cpu().numpy())


def main_with_a_trained_one(batches, trained):
    trained.eval()
    for number, texts in enumerate(batches):
        features = trained.encode(texts)  # maybe: GPU201
        np.save(f"{number}.npy", features.detach().cpu().numpy())
