# file: prompts.py
from embedders import FrozenText


def main(texts):
    embedder = FrozenText()
    embedder.eval()
    embedder.to("cuda")
    for text in texts:
        found = embedder.encode(text)
        print(found.detach().cpu().numpy())


# file: embedders.py
from torch import nn
from transformers import CLIPTextModel, CLIPTokenizer


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()

    def encode(self, *args):
        raise NotImplementedError


class FrozenText(Embedder):
    def __init__(self, version="openai/clip-vit-large-patch14"):
        super().__init__()
        self.tokenizer = CLIPTokenizer.from_pretrained(version)
        self.transformer = CLIPTextModel.from_pretrained(version)
        self.freeze()

    def freeze(self):
        self.transformer = self.transformer.eval()
        for param in self.parameters():
            param.requires_grad = False

    def forward(self, text):
        tokens = self.tokenizer(text, return_tensors="pt")["input_ids"].to("cuda")
        return self.transformer(input_ids=tokens).last_hidden_state

    def encode(self, text):
        return self(text)
