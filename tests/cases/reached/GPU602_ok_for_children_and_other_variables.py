import os
import subprocess

import torch

x = torch.zeros(1, device="cuda")
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["WANDB_MODE"] = "offline"
env = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
subprocess.run(["python", "worker.py"], env=env, check=True)
