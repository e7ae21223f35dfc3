import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segment:True"  # expect: GPU604

import torch

print(torch.cuda.is_available())
