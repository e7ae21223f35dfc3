import json
import pickle

import numpy as np
import torch


def read(folder):
    with open(f"{folder}/meta.json") as f:
        meta = json.load(f)
    with open(f"{folder}/vocab.pkl", "rb") as f:
        vocab = pickle.load(f)
    x = np.load(f"{folder}/x.npy")
    lib = torch.hub.load("pytorch/vision", "resnet18")
    return meta, vocab, x, lib
