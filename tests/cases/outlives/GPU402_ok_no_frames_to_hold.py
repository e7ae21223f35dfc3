import logging

import torch

log = logging.getLogger(__name__)


def join(parts):
    try:
        return torch.cat(parts)
    except torch.cuda.OutOfMemoryError as error:
        log.warning("joined on the host: %s", error)
        joined = torch.cat([part.cpu() for part in parts])
        torch.cuda.empty_cache()
        return joined


def largest(size, smallest):
    while size >= smallest:
        try:
            torch.cuda.empty_cache()
            log.info("size %d", size)
            return size
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            size //= 2
            torch.cuda.empty_cache()
    return smallest
