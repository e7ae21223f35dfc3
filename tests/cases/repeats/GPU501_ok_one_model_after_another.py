import gc

import torch
from zoo import load_model


def sweep(paths, images):
    """Runs one network after the other over the same images."""
    results = {}
    with torch.no_grad():
        for path in paths:
            net = load_model(path).cuda()
            net.eval()
            results[path] = net(images.cuda()).argmax(1).cpu()  # low: GPU505
            del net
            gc.collect()
            torch.cuda.empty_cache()
    return results
