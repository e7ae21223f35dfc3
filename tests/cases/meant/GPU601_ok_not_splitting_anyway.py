import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:4096"
os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync,max_split_size_mb:128")
os.environ["MY_CONF"] = "max_split_size_mb:128"
found = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:128")

import torch

print(torch.cuda.is_available(), found)
