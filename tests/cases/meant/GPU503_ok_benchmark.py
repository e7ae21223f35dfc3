import time

import torch


@torch.inference_mode()
def latency(net, x, n=100):
    """Each call is timed on its own, so each needs its own synchronisation."""
    net.eval().cuda()
    x = x.cuda()
    times = []
    for _ in range(n):
        torch.cuda.synchronize()
        t = time.perf_counter()
        net(x)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - t)
    return sorted(times)[n // 2]
