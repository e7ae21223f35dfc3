import os

conf = "garbage_collection_threshold:0.8,max_splits:64"  # expect: GPU604@c
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = conf  # expect: GPU604@c
os.environ.update({"PYTORCH_CUDA_ALLOC_CONF": "backend:native,preallocate:True"})  # expect: GPU604

import torch

torch.cuda.init()
