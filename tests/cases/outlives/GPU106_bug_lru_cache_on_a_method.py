"""An unbounded cache on a method keeps every object it was called on, with its network, and every vector it has made."""

from functools import lru_cache

import torch
from sentence_transformers import SentenceTransformer


class Memory:
    def __init__(self, name):
        self.encoder = SentenceTransformer(name, device="cuda")
        self.facts = []

    @lru_cache(maxsize=None)  # expect: GPU106@c
    def vector(self, sentence):  # expect: GPU106@c
        with torch.no_grad():
            return self.encoder.encode(sentence, convert_to_tensor=True)

    def recall(self, question, k=3):
        scores = [torch.dot(self.vector(question), self.vector(fact)).item() for fact in self.facts]
        order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
        return [self.facts[i] for i in order[:k]]


def play(worlds):
    for world in worlds:
        memory = Memory("all-mpnet-base-v2")
        for fact, question in world:
            memory.facts.append(fact)
            print(memory.recall(question))
