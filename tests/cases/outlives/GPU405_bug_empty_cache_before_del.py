import torch


def evaluate_all(paths, load, score):
    results = {}
    for p in paths:
        model = load(p).cuda()
        results[p] = score(model)
        torch.cuda.empty_cache()  # note: GPU405@o
        del model  # note: GPU405@o
    return results
