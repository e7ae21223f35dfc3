"""Settings of the allocator: where they are written, when, how they are spelt, and who reads them."""

import os
import subprocess

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:128,expandable_segments:True"  # expect: GPU601
os.environ.setdefault("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")

import torch
from torch import nn

NAME = "PYTORCH_CUDA_ALLOC_CONF"
CONF = {"max_split_size_mb": 8, "garbage_collection_threshold": 0.8}
KEY, VALUE = "PYTORCH_HIP_ALLOC_CONF", "roundup_power2_divisions:3"

model = nn.Linear(10, 10).cuda()
os.environ[NAME] = "max_split_size_mb:10"  # expect: GPU602  # maybe: GPU601, GPU604
os.environ.update({"PYTORCH_CUDA_ALLOC_CONF": "expandable_segment:True", "OMP_NUM_THREADS": "1"})  # maybe: GPU602, GPU604
os.environ |= {"PYTORCH_CUDA_ALLOC_CONF": f"max_split_size_mb:{CONF['max_split_size_mb']}"}  # maybe: GPU602, GPU601, GPU604
os.putenv(NAME, "backend:cudaMallocAsync,release_lock_on_cudamalloc:True")  # maybe: GPU602, GPU604
os.environ[KEY] = VALUE  # maybe: GPU602, GPU604, GPU601


def configure(split):
    settings = ",".join(f"{key}:{value}" for key, value in CONF.items())
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = settings  # maybe: GPU602
    if split:
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:%d" % split  # maybe: GPU602
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] += ",garbage_collection_threshold:0.9"


def launch(rank):
    environment = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF="garbage_collection_treshold:0.6")  # maybe: GPU604
    environment["CUDA_VISIBLE_DEVICES"] = str(rank)
    subprocess.run(["python", "worker.py"], env=environment)
    return environment


def peaks():
    torch.cuda.reset_max_memory_allocated()  # maybe: GPU603
    torch.cuda.reset_max_memory_cached()  # maybe: GPU603
    cached = torch.cuda.memory_cached() if hasattr(torch.cuda, "memory_cached") else torch.cuda.memory_reserved()
    try:
        most = torch.cuda.max_memory_reserved()
    except AttributeError:
        most = torch.cuda.max_memory_cached()
    with torch.cuda.amp.autocast():  # maybe: GPU603
        out = model(torch.zeros(1, 10).cuda())
    scaler = torch.cuda.amp.GradScaler()  # maybe: GPU603
    scaler.scale(out.sum()).backward()
    return cached, most


@torch.cuda.amp.custom_fwd  # maybe: GPU603
def forward(ctx, x):
    return x


def first_use():
    torch.cuda.init()
    os.environ["CUDA_VISIBLE_DEVICES"] = "1"  # maybe: GPU602
    torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    torch.cuda.set_per_process_memory_fraction(0.5)
    return torch.cuda.memory_stats()["allocated_bytes.all.peak"]


if __name__ == "__main__":
    configure(64)
    launch(0)
    print(peaks(), first_use())
