import gc

import torch
from torch import nn


def flush():
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    elif torch.backends.mps.is_available():
        torch.mps.empty_cache()


class Callback:
    def on_epoch_end(self):
        flush()
