from functools import lru_cache

import torch
from transformers import AutoModel, AutoTokenizer

tok = AutoTokenizer.from_pretrained("bert-base-uncased")
bert = AutoModel.from_pretrained("bert-base-uncased").cuda().eval()


@lru_cache(maxsize=None)  # expect: GPU106@c
def embed(text):  # expect: GPU106@c
    with torch.no_grad():
        return bert(**tok(text, return_tensors="pt").to("cuda")).last_hidden_state


def search(query, docs):
    q = embed(query).mean(1)
    return max(docs, key=lambda d: torch.cosine_similarity(q, embed(d).mean(1)).item())
