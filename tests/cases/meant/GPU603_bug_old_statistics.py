import torch


def report():
    print("allocated", torch.cuda.memory_allocated() / 2**20)
    print("cached", torch.cuda.memory_cached() / 2**20)  # expect: GPU603
    print("max cached", torch.cuda.max_memory_cached() / 2**20)  # expect: GPU603
    torch.cuda.reset_max_memory_allocated()  # expect: GPU603
    torch.cuda.reset_max_memory_cached()  # expect: GPU603
