"""The parts of what torch's allocator took from the driver, read off its own list of segments."""

from __future__ import annotations

import inspect
import os
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpulint.memory.accounts.records import Entry, How
from gpulint.memory.device import torch_module
from gpulint.memory.live import storage_key
from gpulint.runtime.probes.crests import blocks_of
from gpulint.runtime.probes.plain import live_tensors
from gpulint.units import format_bytes

MOST_NODES = 100_000  # of all autograd graphs together
_LT = 1024 * 1024  # cublasLt's workspace, where CUBLASLT_WORKSPACE_SIZE says nothing
_PAIR = re.compile(r":([0-9]+):([0-9]+)")


@dataclass(slots=True)
class _Sums:
    tensors: int = 0
    rounding: int = 0
    blas: int = 0
    blas_blocks: int = 0
    unseen: int = 0
    waiting: int = 0
    gaps: int = 0
    spare: int = 0
    pool_used: int = 0
    pool_free: int = 0

    def entries(self, pools: int) -> tuple[Entry, ...]:
        blocks = f"{self.blas_blocks} block{'' if self.blas_blocks == 1 else 's'}"
        free = f"{format_bytes(self.pool_free)} free in {pools} pool{'' if pools == 1 else 's'}"
        every = (
            Entry("tensors", self.tensors, note="that Python or an autograd graph holds"),
            Entry("rounding", self.rounding, note="blocks are larger than what was asked for"),
            Entry("cuBLAS workspaces", self.blas, How.BY_SIZE, f"{blocks}; memory.clear() drops them"),
            Entry("held by C++ code", self.unseen, note="no tensor of Python's: DDP's buckets, libraries"),
            Entry("waiting", self.waiting, note="freed, and another stream may still use it"),
            Entry("private pools", self.pool_used + self.pool_free, note=f"CUDA graphs, MemPool; {free}"),
            Entry("cache, fragmented", self.gaps, note="free parts of segments in use"),
            Entry("cache, whole segments", self.spare, note="empty_cache() gives it back"),
        )
        return tuple(entry for entry in every if entry.bytes)


def entries(index: int) -> tuple[Entry, ...]:
    """What lies in the memory that torch reserved on a device, adding up to it."""
    segments = segments_of(index)
    if not segments:  # another allocator than torch's own: it tells its sums, if any
        return _sums_only(index)
    addresses = _tensor_addresses(index)
    blas = workspace_sizes(torch_module().cuda.get_device_capability(index))
    sums, pools = _Sums(), set()
    for segment in segments:
        pool = tuple(segment.get("segment_pool_id", (0, 0)))
        if pool != (0, 0):
            pools.add(pool)
            sums.pool_used += segment["active_size"]
            sums.pool_free += segment["total_size"] - segment["active_size"]
            continue
        for address, block in blocks_of(segment):
            _add(sums, segment, address, block, addresses, blas)
    return sums.entries(len(pools))


def _add(
    sums: _Sums,
    segment: Any,
    start: int,
    block: Mapping[str, Any],
    addresses: Sequence[int],
    blas: frozenset[int],
) -> None:
    size = int(block["size"])
    if block["state"] == "inactive":
        if segment["active_size"]:
            sums.gaps += size
        else:
            sums.spare += size
        return
    if block["state"] != "active_allocated":
        sums.waiting += size
        return
    requested = int(block.get("requested_size", size))
    sums.rounding += size - requested
    at = bisect_left(addresses, start)
    if at < len(addresses) and addresses[at] < start + size:
        sums.tensors += requested
    elif requested in blas:
        sums.blas += requested
        sums.blas_blocks += 1
    else:
        sums.unseen += requested


def segments_of(index: int) -> list[dict[str, Any]]:
    """What torch's allocator tells of its segments on a device, without the trace of what happened where torch can leave it out."""
    snapshot = torch_module().cuda.memory_snapshot
    light = "include_traces" in inspect.signature(snapshot).parameters
    every = snapshot(include_traces=False) if light else snapshot()
    return [segment for segment in every if segment["device"] == index]


def _sums_only(index: int) -> tuple[Entry, ...]:
    cuda = torch_module().cuda
    allocated, reserved = int(cuda.memory_allocated(index)), int(cuda.memory_reserved(index))
    every = (
        Entry("allocated", allocated, note="this allocator does not tell its blocks"),
        Entry("cache", reserved - allocated),
    )
    return tuple(entry for entry in every if entry.bytes)


def workspace_sizes(capability: tuple[int, int]) -> frozenset[int]:
    """The sizes of the blocks that torch gives cuBLAS and cublasLt to work in, on a card of this compute capability."""
    pairs = _PAIR.findall(os.environ.get("CUBLAS_WORKSPACE_CONFIG", ""))
    if pairs:
        # Versions of torch differ in whether they heed the second number.
        blas = {
            sum(int(size) * int(count) for size, count in pairs) * 1024,
            sum(int(size) for size, _ in pairs) * 1024,
        }
    else:
        blas = {32 * 1024**2 if capability == (9, 0) else (2 * 4096 + 8 * 16) * 1024}
    given = os.environ.get("CUBLASLT_WORKSPACE_SIZE", "")
    return frozenset({*blas, int(given) * 1024 if given.isdigit() else _LT})


# -- which blocks are tensors ------------------------------------------------------------------------------------


def _tensor_addresses(index: int) -> list[int]:
    """Where the storages of all tensors begin that Python or an autograd graph holds, sorted."""
    from gpulint.runtime.holding.walking import tensors_behind

    device, found = f"cuda:{index}", set()
    tensors = live_tensors()
    nodes = [tensor.grad_fn for tensor in tensors if tensor.requires_grad]
    for tensor in (*tensors, *_gradients(tensors), *tensors_behind(nodes, set(), MOST_NODES)):
        key = storage_key(tensor) if tensor.is_cuda else None
        if key is not None and key[0] == device:
            found.add(key[1])
    return sorted(found)


def _gradients(tensors: Sequence[Any]) -> Iterator[Any]:
    """Gradients that nobody has asked for yet: Python has no object of them."""
    for tensor in tensors:
        if tensor.is_leaf and tensor.grad is not None:
            yield tensor.grad
