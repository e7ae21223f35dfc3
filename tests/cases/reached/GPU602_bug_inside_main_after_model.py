import os

import torch
from torchvision.models import resnet18


def main():
    net = resnet18().to("cuda")
    torch.cuda.empty_cache()
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "garbage_collection_threshold:0.8"  # expect: GPU602
    return net


if __name__ == "__main__":
    main()
