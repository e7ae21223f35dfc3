"""The door to torch: whether CUDA can be used in this process, and if not, why not."""

from __future__ import annotations

import contextlib
import functools
import logging
import sys
from types import ModuleType
from typing import Any

UNUSED = "CUDA has not been used in this process"
logger = logging.getLogger("gpulint.memory")


class Unavailable(RuntimeError):
    """torch is not installed here."""


def torch_module() -> ModuleType:
    """torch, imported on first use. Raises Unavailable where it is not installed."""
    try:
        import torch
    except ImportError as error:
        raise Unavailable("torch is not installed in this environment") from error
    return torch


def cuda_missing() -> str | None:
    """Why CUDA cannot be used here, or None where it can. Does not initialise CUDA."""
    try:
        torch = torch_module()
    except Unavailable as error:
        return str(error)
    if torch.cuda.is_available():
        return None
    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        return f"torch {torch.__version__} is built without CUDA"
    return "torch sees no CUDA device (driver missing, or CUDA_VISIBLE_DEVICES hides all of them)"


def cuda_started() -> bool:
    """Whether this process has initialised CUDA. Never imports torch."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return bool(cuda is not None and cuda.is_initialized())


def device_index(device: Any = None) -> int:
    """The number of a CUDA device given as None (the current one), int, "cuda:1" or torch.device.

    Raises ValueError for a device that is not CUDA or does not exist.
    """
    torch = torch_module()
    if device is None:
        return int(torch.cuda.current_device()) if torch.cuda.is_initialized() else 0
    if isinstance(device, int):
        index = device
    else:
        named = torch.device(device)
        if named.type != "cuda":
            raise ValueError(f"expected a CUDA device, got {str(named)!r}")
        index = device_index() if named.index is None else int(named.index)
    if not 0 <= index < torch.cuda.device_count():
        raise ValueError(f"there is no CUDA device {index}; this process sees {torch.cuda.device_count()}")
    return index


def started_devices() -> range:
    """The devices whose counters can be read: all visible ones once CUDA has started, else none."""
    return range(torch_module().cuda.device_count()) if cuda_started() else range(0)


def in_use(index: int) -> tuple[int, int]:
    """Bytes in tensors and bytes reserved, of this process on a device; 0 before CUDA has started."""
    if not cuda_started():
        return 0, 0
    cuda = torch_module().cuda
    return int(cuda.memory_allocated(index)), int(cuda.memory_reserved(index))


def allocated() -> int:
    """Bytes in tensors, over all devices of this process."""
    return sum(in_use(index)[0] for index in started_devices())


def tell(message: str, level: int = logging.INFO) -> None:
    """Log a line. Where the program has set up no logging at all, an INFO line would vanish: it goes to
    standard error then."""
    if logger.hasHandlers() or level >= logging.WARNING:
        logger.log(level, "%s", message)
    elif logger.level <= level:
        # Nobody reads it any more: no reason to end a training
        with contextlib.suppress(OSError, ValueError):
            print(message, file=sys.stderr or sys.__stderr__)


@functools.cache
def say_once(message: str) -> None:
    """Log at INFO what a call cannot do here, once a process."""
    tell(message)
