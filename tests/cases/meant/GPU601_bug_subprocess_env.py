import os
import subprocess
import sys


def launch(script, gpu):
    env = dict(os.environ, CUDA_VISIBLE_DEVICES=str(gpu))
    env["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:32,garbage_collection_threshold:0.6"  # expect: GPU601
    return subprocess.run([sys.executable, script], env=env, check=True)
