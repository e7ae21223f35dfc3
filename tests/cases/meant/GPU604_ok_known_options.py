import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = (
    "backend:native,expandable_segments:True,garbage_collection_threshold:0.8,roundup_power2_divisions:8"
)
os.environ["CUDA_LAUNCH_BLOCKING"] = "1"

import torch

torch.cuda.init()
