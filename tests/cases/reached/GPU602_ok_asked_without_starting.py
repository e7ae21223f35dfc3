import os

import torch

print(torch.cuda.device_count(), torch.cuda.memory_allocated())
torch.cuda.manual_seed_all(0)
if torch.cuda.device_count():
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
