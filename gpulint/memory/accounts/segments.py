"""The parts of what torch's allocator took from the driver, read off its own list of segments."""

from __future__ import annotations

import inspect
import os
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gpulint.memory.accounts.records import Entry, How
from gpulint.memory.device import in_use, torch_module
from gpulint.memory.live import storage_key
from gpulint.runtime.probes.plain import live_tensors
from gpulint.units import format_bytes, plural

MOST_NODES = 100_000  # of all autograd graphs together
_LT = 1024 * 1024  # cublasLt's workspace, where CUBLASLT_WORKSPACE_SIZE says nothing
_PAIR = re.compile(r":([0-9]+):([0-9]+)")


_BLAS, _POOLS = "cuBLAS workspaces", "private pools"
# What the parts are called, in the order in which they are told, and what is to be known about them.
_PARTS: Final = {
    "tensors": "that Python or an autograd graph holds",
    "rounding": "blocks are larger than what was asked for",
    _BLAS: "{blocks}; memory.clear() drops them",
    "held by C++ code": "no tensor of Python's: DDP's buckets, libraries",
    "waiting": "freed, and another stream may still use it",
    _POOLS: "CUDA graphs, MemPool; {free} free in {pools}",
    "cache, fragmented": "free parts of segments in use",
    "cache, whole segments": "empty_cache() gives it back",
}


def entries(index: int) -> tuple[Entry, ...]:
    """What lies in the memory that torch reserved on a device, adding up to it."""
    segments = segments_of(index)
    if not segments:  # another allocator than torch's own: it tells its sums, if any
        return _sums_only(index)
    addresses = _tensor_addresses(index)
    blas = workspace_sizes(torch_module().cuda.get_device_capability(index))
    sums: Counter[str] = Counter()
    pools, workspaces, free = set(), 0, 0
    for segment in segments:
        pool = tuple(segment.get("segment_pool_id", (0, 0)))
        if pool != (0, 0):
            pools.add(pool)
            sums[_POOLS] += segment["total_size"]
            free += segment["total_size"] - segment["active_size"]
            continue
        for block in segment["blocks"]:
            name, requested = _part(segment, block, addresses, blas)
            sums[name] += requested
            sums["rounding"] += int(block["size"]) - requested
            workspaces += name == _BLAS
    blocks, groups = plural(workspaces, "block"), plural(len(pools), "pool")
    told = {"blocks": blocks, "free": format_bytes(free), "pools": groups}
    return tuple(
        Entry(name, sums[name], How.BY_SIZE if name == _BLAS else How.COUNTED, note.format(**told))
        for name, note in _PARTS.items()
        if sums[name]
    )


def _part(
    segment: Any, block: Mapping[str, Any], addresses: Sequence[int], blas: frozenset[int]
) -> tuple[str, int]:
    """What a block is, and how much of it: all but what it is larger than what was asked for."""
    start, size = int(block["address"]), int(block["size"])
    if block["state"] == "inactive":
        return "cache, fragmented" if segment["active_size"] else "cache, whole segments", size
    if block["state"] != "active_allocated":
        return "waiting", size
    requested = int(block.get("requested_size", size))
    at = bisect_left(addresses, start)
    if at < len(addresses) and addresses[at] < start + size:
        return "tensors", requested
    return _BLAS if requested in blas else "held by C++ code", requested


def segments_of(index: int) -> list[dict[str, Any]]:
    """What torch's allocator tells of its segments on a device, without the trace of what happened where torch can leave it out."""
    snapshot = torch_module().cuda.memory_snapshot
    light = "include_traces" in inspect.signature(snapshot).parameters
    every = snapshot(include_traces=False) if light else snapshot()
    return [segment for segment in every if segment["device"] == index]


def _sums_only(index: int) -> tuple[Entry, ...]:
    allocated, reserved = in_use(index)
    every = (
        Entry("allocated", allocated, note="this allocator does not tell its blocks"),
        Entry("cache", reserved - allocated),
    )
    return tuple(entry for entry in every if entry.bytes)


def workspace_sizes(capability: tuple[int, int]) -> frozenset[int]:
    """The sizes of the blocks that torch gives cuBLAS and cublasLt to work in, on a card of this compute capability."""
    found = _PAIR.findall(os.environ.get("CUBLAS_WORKSPACE_CONFIG", ""))
    if pairs := [(int(size), int(count)) for size, count in found]:
        # Versions of torch differ in whether they heed the second number.
        blas = {1024 * sum(size * count for size, count in pairs), 1024 * sum(size for size, _ in pairs)}
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
    # Of gradients that nobody has asked for yet Python has no object
    gradients = [tensor.grad for tensor in tensors if tensor.is_leaf and tensor.grad is not None]
    for tensor in (*tensors, *gradients, *tensors_behind(nodes, set(), MOST_NODES)):
        key = storage_key(tensor) if tensor.is_cuda else None
        if key is not None and key[0] == device:
            found.add(key[1])
    return sorted(found)
