import os

import torch

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"  # expect: GPU602


def choose(index):
    if torch.cuda.is_available():
        os.environ["CUDA_VISIBLE_DEVICES"] = str(index)  # expect: GPU602
    return torch.device("cuda")
