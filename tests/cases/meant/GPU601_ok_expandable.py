import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "garbage_collection_threshold:0.8")

import torch

HELP = "max_split_size_mb:128 was tried and reserved far more"
print(torch.cuda.device_count(), HELP)
