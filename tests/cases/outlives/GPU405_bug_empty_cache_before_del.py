import torch


def evaluate_all(paths, load, score):
    results = {}
    for p in paths:
        model = load(p).cuda()
        results[p] = score(model)
        torch.cuda.empty_cache()  # medium: GPU405@o
        del model  # medium: GPU405@o
    return results
