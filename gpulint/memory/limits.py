"""Limits and peak counters of the calling process. They never reach into another process."""

from __future__ import annotations

from typing import Any

from gpulint.memory import peaks
from gpulint.memory.device import cuda_missing, cuda_started, device_index, say_once, torch_module


def reset_peak(device: Any = None) -> bool:
    """Start the peak figures of `device` afresh. Peaks of open `monitor` windows stay theirs.

    Returns False, and logs why, where there is no CUDA; also False before CUDA has started: there is no peak.
    """
    missing = cuda_missing()
    if missing:
        say_once(f"reset_peak() has nothing to reset: {missing}")
        return False
    if not cuda_started():
        return False
    peaks.forget(device_index(device))
    return True


def limit(fraction: float, device: Any = None) -> int:
    """Let this process allocate at most `fraction` (above 0, at most 1) of the card; the bytes that this is.

    Beyond it the allocator raises its OutOfMemoryError. Only the caching allocator obeys: the CUDA context,
    NCCL and cuDNN's own memory come on top. Returns 0, and logs why, where there is no CUDA.
    """
    if not 0 < fraction <= 1:
        raise ValueError(
            f"the fraction must be above 0 and at most 1, got {fraction}; 0.8 is 80 % of the card"
        )
    missing = cuda_missing()
    if missing:
        say_once(f"limit() has no effect: {missing}")
        return 0
    torch = torch_module()
    index = device_index(device)
    torch.cuda.set_per_process_memory_fraction(float(fraction), index)
    return int(torch.cuda.get_device_properties(index).total_memory * fraction)
