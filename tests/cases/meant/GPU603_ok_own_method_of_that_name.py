import torch


class Store:
    def memory_cached(self):
        return 0

    def max_memory_cached(self):
        return 0


def show(store: Store):
    print(store.memory_cached(), store.max_memory_cached(), torch.cuda.memory_reserved())
