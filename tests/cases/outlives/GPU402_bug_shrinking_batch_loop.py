import gc

import torch


def find_batch_size(step, make_batch, start=512):
    bs = start
    while bs > 0:
        try:
            step(make_batch(bs))
            return bs
        except RuntimeError as exc:
            if "out of memory" not in str(exc):
                raise exc
            gc.collect()  # expect: GPU402@c
            torch.cuda.empty_cache()  # expect: GPU402@c
            bs //= 2
    raise RuntimeError("not even one sample fits")
