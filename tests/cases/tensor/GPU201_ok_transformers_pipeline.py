import torch
from transformers import pipeline


class Classifier:
    def __init__(self, name):
        self.model = pipeline(task="text-classification", model=name, device=torch.device("cuda"))

    def predict(self, documents, batch_size=16):
        found = []
        for start in range(0, len(documents), batch_size):
            found.extend(self.model(documents[start : start + batch_size], top_k=1, truncation=True))
        return [item["label"] for item in found]
