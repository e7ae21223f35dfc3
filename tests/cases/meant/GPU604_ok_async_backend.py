import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"
os.environ["ALLOC_CONF"] = "frobnicate:True"

import torch

torch.cuda.init()
