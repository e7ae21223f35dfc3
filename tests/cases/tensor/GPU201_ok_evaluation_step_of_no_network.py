"""The same kind of object by its method's name, but nothing says that it is a network: a runtime that was given a file."""

import onnxruntime
import torch
from tqdm import tqdm


class Runtime:
    def __init__(self, path):
        self.session = onnxruntime.InferenceSession(path, providers=["CUDAExecutionProvider"])

    def evaluation_step(self, batch):
        (scores,) = self.session.run(None, {k: v.numpy() for k, v in batch.items() if k != "label"})
        return {"scores": torch.from_numpy(scores)}


class Examiner:
    def __init__(self, path, loader):
        self.model = Runtime(path)
        self.loader = loader

    def run(self):
        hits, rows = 0, 0
        for batch in tqdm(self.loader):
            result = self.model.evaluation_step(batch)
            hits += (result["scores"].argmax(-1) == batch["label"]).sum().item()
            rows += len(batch["label"])
        print("on", "cuda" if torch.cuda.is_available() else "cpu", hits / rows)
