import os

os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True,max_split_size_mb:128")  # expect: GPU601

import torch

print(torch.cuda.is_available())
