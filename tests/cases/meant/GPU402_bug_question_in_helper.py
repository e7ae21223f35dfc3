"""A retry inside the handler; a helper of the file says whether memory ran out."""

import gc

import torch


def ran_out(error):
    text = str(error)
    return isinstance(error, RuntimeError) and ("CUDA out of memory" in text or "CUDNN_STATUS_NOT_SUPPORTED" in text)


def largest_batch(run, batch_size):
    while batch_size:
        try:
            run(batch_size)
            return batch_size
        except Exception as error:
            if not ran_out(error):
                raise
            gc.collect()  # low: GPU402
            torch.cuda.empty_cache()  # @a
            batch_size //= 2
    raise ValueError("not even one fits")
