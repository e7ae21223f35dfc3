"""What is told in between would be another figure, were the cache emptied later."""

import torch



def compare(paths, load, score):
    scores = {}
    for path in paths:
        model = load(path).cuda()
        scores[path] = score(model)
        torch.cuda.empty_cache()  # note: GPU405@o
        print(path, torch.cuda.memory_reserved())
        del model  # note: GPU405@o
    return scores
