"""The figures of one CUDA device as this process and its driver see it."""

from __future__ import annotations

import logging
import os
from dataclasses import asdict, dataclass
from typing import Any, Final

from gpulint.memory.accounts.driver import driver
from gpulint.memory.accounts.segments import segments_of
from gpulint.memory.device import cuda_missing, cuda_started, device_index, tell, torch_module
from gpulint.memory.peaks import process_peak
from gpulint.units import format_bytes


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """Bytes on one device at one moment. Without CUDA all figures are 0 and `missing` says why.

    `allocated` is held by tensors, `reserved` what the caching allocator took from the driver, `active` is
    allocated plus what waits for other streams, `inactive_split` the free parts of blocks that are partly in
    use. `free` and `total` are the whole card's, other processes included; None where they could not be read
    without starting CUDA. `largest_free_block` is the largest piece of the cache that one tensor could take;
    None where the blocks were not asked for. `retries` counts the times the allocator had to give its cache
    back and try again, `ooms` the errors thrown.
    """

    device: int
    name: str = ""
    allocated: int = 0
    reserved: int = 0
    active: int = 0
    inactive_split: int = 0
    peak_allocated: int = 0
    peak_reserved: int = 0
    free: int | None = None
    total: int | None = None
    largest_free_block: int | None = None
    retries: int = 0
    ooms: int = 0
    missing: str = ""

    @property
    def cached(self) -> int:
        """Bytes reserved and not allocated."""
        return max(0, self.reserved - self.allocated)

    @property
    def fragmentation(self) -> float | None:
        """The part of the cache that lies outside its largest free block, 0 to 1; None where not known."""
        if self.largest_free_block is None:
            return None
        return 1 - self.largest_free_block / self.cached if self.cached else 0.0

    @property
    def other_processes(self) -> int | None:
        """Bytes on the card that this process's allocator did not reserve: other processes and CUDA itself."""
        if self.free is None or self.total is None:
            return None
        return max(0, self.total - self.free - self.reserved)

    def to_json(self) -> dict[str, Any]:
        """Plain figures, with `cached` and `fragmentation`."""
        return {**asdict(self), "cached": self.cached, "fragmentation": self.fragmentation}

    def log(self, prefix: str = "", level: int = logging.INFO) -> MemoryStats:
        """Write `summary()` to the logger `gpulint.memory`, and return these figures."""
        tell(f"{prefix}: {self.summary()}" if prefix else self.summary(), level)
        return self

    def summary(self) -> str:
        """One line for people."""
        if self.missing:
            return f"no CUDA memory to report: {self.missing}"
        parts = [
            f"cuda:{self.device} allocated {format_bytes(self.allocated)} (peak {format_bytes(self.peak_allocated)})",
            f"reserved {format_bytes(self.reserved)} (peak {format_bytes(self.peak_reserved)})",
        ]
        if self.fragmentation is not None and self.cached:
            assert self.largest_free_block is not None
            parts.append(
                f"cached {format_bytes(self.cached)}, largest block {format_bytes(self.largest_free_block)}"
                f" ({self.fragmentation:.0%} fragmented)"
            )
        if self.free is not None and self.total is not None:
            parts.append(f"card {format_bytes(self.free)} free of {format_bytes(self.total)}")
        parts.append(f"retries {self.retries}, OOMs {self.ooms}")
        return " | ".join(parts)

    __str__ = summary


_SIZES: Final = ("allocated", "reserved", "active", "inactive_split")


def stats(device: Any = None, blocks: bool = True) -> MemoryStats:
    """The figures of `device` (None: the current one). Never initialises CUDA.

    `blocks=False` leaves out `largest_free_block`, which needs a look at every block of the cache: well below a
    millisecond, more on old versions of torch while allocation history is being recorded.
    """
    missing = cuda_missing()
    if missing:
        return MemoryStats(-1, missing=missing)
    torch = torch_module()
    index = device_index(device)
    if not cuda_started():
        free, total = _card_without_cuda(index)
        return MemoryStats(index, free=free, total=total)
    counters = torch.cuda.memory_stats(index)
    free, total = torch.cuda.mem_get_info(index)
    peak_allocated, peak_reserved = process_peak(index)
    return MemoryStats(
        device=index,
        name=torch.cuda.get_device_name(index),
        peak_allocated=peak_allocated,
        peak_reserved=peak_reserved,
        free=int(free),
        total=int(total),
        largest_free_block=_largest_free_block(index) if blocks else None,
        retries=counters.get("num_alloc_retries", 0),
        ooms=counters.get("num_ooms", 0),
        **{name: counters.get(f"{name}_bytes.all.current", 0) for name in _SIZES},
    )


def _largest_free_block(index: int) -> int:
    blocks = (
        block
        for segment in segments_of(index)
        if tuple(segment.get("segment_pool_id", (0, 0))) == (0, 0)
        for block in segment["blocks"]
    )
    return max((int(block["size"]) for block in blocks if block["state"] == "inactive"), default=0)


def _card_without_cuda(index: int) -> tuple[int | None, int | None]:
    """Free and total bytes through NVML, because `mem_get_info` would start CUDA. Only where NVML's numbers are
    CUDA's: NVML ignores CUDA_VISIBLE_DEVICES, and orders cards by their bus where CUDA puts the fastest first."""
    in_order = os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES") is not None
    if chosen or not (in_order or torch_module().cuda.device_count() == 1):
        return None, None
    try:
        with driver() as nvml:
            memory = nvml.nvmlDeviceGetMemoryInfo(nvml.nvmlDeviceGetHandleByIndex(index))
    except Exception:  # no library, no driver, no permission: the figures stay unknown
        return None, None
    return int(memory.free), int(memory.total)
