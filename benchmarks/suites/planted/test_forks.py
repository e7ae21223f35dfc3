"""A process that forks users of the device, as some suites do: they can only where nothing has initialized CUDA before."""

from __future__ import annotations

import os

import torch


def test_uses_nothing() -> None:
    """Comes first, and is looked at."""


def test_forks_a_user_of_the_device(device: str) -> None:
    child = os.fork()
    if child == 0:
        try:
            os._exit(int(torch.ones(2, device=device).sum().item() != 2))
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
