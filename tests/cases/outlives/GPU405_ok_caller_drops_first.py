import gc

import torch


def clear():
    gc.collect()
    torch.cuda.empty_cache()


def evaluate_all(paths, load, score):
    results = {}
    for p in paths:
        model = load(p).cuda()
        results[p] = score(model)
        del model
        clear()
    return results


def swap(holder, make):
    holder.model = None
    clear()
    holder.model = make().cuda()
