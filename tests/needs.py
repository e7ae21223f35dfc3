"""What tests need of the machine that they run on."""

from importlib.util import find_spec

import pytest

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


def cards() -> int:
    """How many CUDA devices there are."""
    if find_spec("torch") is None:
        return 0
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0
