"""A handler that asks a helper about something that is no memory."""

import torch


def is_stale(error):
    return isinstance(error, RuntimeError) and "connection reset" in str(error)


def fetch(source):
    for _ in range(3):
        try:
            return source()
        except RuntimeError as error:
            if is_stale(error):
                torch.cuda.empty_cache()
            else:
                raise
    return None
