"""Some steps under a profiler: each begins with an empty cache, and that is what is looked at."""

import torch
from torch.profiler import profile, record_function


def watch(model, opt, loader, path):
    with profile(profile_memory=True) as prof:
        for x, y in loader:
            with record_function("FORWARD"):
                loss = model(x.cuda(), y.cuda())
            with record_function("BACKWARD"):
                loss.backward()
            opt.step()
            opt.zero_grad()
            torch.cuda.empty_cache()  # low: GPU501
    prof.export_chrome_trace(path)
