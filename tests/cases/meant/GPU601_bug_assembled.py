import os

SIZE = 128
OPTIONS = ["garbage_collection_threshold:0.8", "max_split_size_mb:64"]


def first():
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = f"max_split_size_mb:{SIZE}"  # expect: GPU601


def second():
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = ",".join(["garbage_collection_threshold:0.8", "max_split_size_mb:64"])  # expect: GPU601


def third(more):
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:512," + more  # expect: GPU601
