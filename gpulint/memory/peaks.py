"""The allocator has one peak counter for a device; this module lets several windows share it.

Whoever needs the peak of a stretch has to reset the counter at its start, and everybody who is still waiting
for the peak of a longer stretch loses it. So before each reset the peak so far is given to every open window
and to the process's own memory of it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from gpulint.memory.device import cuda_missing, cuda_started, device_index, say_once, torch_module


@dataclass(slots=True)
class PeakWindow:
    """A stretch of the program on one device. `allocated` and `reserved` are the highest bytes seen in it."""

    device: int
    allocated: int = 0
    reserved: int = 0

    def _see(self, allocated: int, reserved: int) -> None:
        self.allocated = max(self.allocated, allocated)
        self.reserved = max(self.reserved, reserved)


_lock = threading.Lock()
_open: list[PeakWindow] = []
_process: dict[int, PeakWindow] = {}


def _counters(device: int) -> tuple[int, int]:
    cuda = torch_module().cuda
    return int(cuda.max_memory_allocated(device)), int(cuda.max_memory_reserved(device))


def _hand_over(device: int) -> None:
    allocated, reserved = _counters(device)
    for window in (*_open, _process.setdefault(device, PeakWindow(device))):
        if window.device == device:
            window._see(allocated, reserved)


def open_window(device: int) -> PeakWindow:
    """Begin a window at the memory in use now; before CUDA has started that is none."""
    window = PeakWindow(device)
    with _lock:
        if cuda_started():
            _hand_over(device)
            torch_module().cuda.reset_peak_memory_stats(device)
        _open.append(window)
    return window


def close_window(window: PeakWindow) -> None:
    """End a window; its figures are final."""
    with _lock:
        if cuda_started():
            window._see(*_counters(window.device))
        # By identity: equal figures do not make two windows the same one.
        _open[:] = [other for other in _open if other is not window]


def process_peak(device: int) -> tuple[int, int]:
    """Peak allocated and reserved bytes of the process since the start or the last `forget`."""
    allocated, reserved = _counters(device)
    with _lock:
        past = _process.get(device)
        return (
            (max(allocated, past.allocated), max(reserved, past.reserved)) if past else (allocated, reserved)
        )


def forget(device: int) -> None:
    """Start the process's peak afresh; open windows keep theirs."""
    with _lock:
        _hand_over(device)
        torch_module().cuda.reset_peak_memory_stats(device)
        _process.pop(device, None)


# -- of the calling process; they never reach into another ------------------------------------------------------


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
    forget(device_index(device))
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
