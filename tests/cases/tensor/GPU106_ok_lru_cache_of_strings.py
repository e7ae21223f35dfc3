"""What is cached without a bound are cleaned-up strings; the vectors are in a bounded cache outside of any object."""

import re
from functools import lru_cache

import torch
from sentence_transformers import SentenceTransformer

encoder = SentenceTransformer("all-mpnet-base-v2", device="cuda")


@lru_cache(maxsize=None)
def cleaned(sentence):
    return re.sub(r"\W+", " ", sentence).strip().lower()


@lru_cache(maxsize=256)
@torch.no_grad()
def vector(sentence):
    return encoder.encode(sentence, convert_to_tensor=True)


class Memory:
    def __init__(self):
        self.facts = []

    def recall(self, question, k=3):
        question = cleaned(question)
        scores = [torch.dot(vector(question), vector(cleaned(fact))).item() for fact in self.facts]
        order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
        return [self.facts[i] for i in order[:k]]
