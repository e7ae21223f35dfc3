"""Out-of-memory messages of every torch since 1.10 (and of the libraries around it), read into figures."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final, Literal

from gpulint.units import parse_bytes

Source = Literal["allocator", "cuda", "library", "host"]

# No card has a quadrillion of anything: a longer number is none of torch's.
_SIZE: Final = r"(?:-?\d{1,15}(?:\.\d{1,9})?\s*(?:bytes|[KMGTPE]i?B|B))"


@dataclass(frozen=True, slots=True)
class Other:
    """Another process on the same card, as the message names it."""

    pid: int
    bytes: int


@dataclass(frozen=True, slots=True)
class OomMessage:
    """One message in bytes; None for what it does not say.

    `source` is *allocator* for torch's caching allocator, *cuda* for a bare CUDA error, *library* for cuBLAS,
    cuDNN or NCCL, *host* for the CPU allocator. `cached` is reserved and not allocated. `process` is what this
    process holds on the card, CUDA context included; `allowed` the limit of `set_per_process_memory_fraction`;
    `private` the part of the allocated memory in private pools (CUDA graphs).
    """

    source: Source
    requested: int | None = None
    device: int | None = None
    total: int | None = None
    free: int | None = None
    allocated: int | None = None
    cached: int | None = None
    process: int | None = None
    allowed: int | None = None
    private: int | None = None
    others: tuple[Other, ...] = ()
    library: str = ""
    backend: str = "CUDA"

    @property
    def reserved(self) -> int | None:
        return None if self.allocated is None or self.cached is None else self.allocated + self.cached


_HEAD = re.compile(
    rf"(?P<backend>CUDA|HIP|XPU) out of memory\.?\s*Tried to allocate (?P<size>{_SIZE})",
    re.IGNORECASE,
)
_OLD = re.compile(
    rf"Tried to allocate (?P<size>{_SIZE}) \(GPU (?P<device>\d{1, 9}); (?P<total>{_SIZE}) total capacity;"
    rf" (?P<allocated>{_SIZE}) already allocated; (?P<free>{_SIZE}) free;(?: (?P<allowed>{_SIZE}) allowed;)?"
    rf" (?P<reserved>{_SIZE}) (?:reserved in total by PyTorch|cached)"
)
_CARD = re.compile(
    rf"GPU (?P<device>\d{1, 9}) has a total capaci?ty of (?P<total>{_SIZE}) of which (?P<free>{_SIZE}) is free"
)
_PROCESS = re.compile(rf"this process has (?P<size>{_SIZE}) memory in use", re.IGNORECASE)
_OTHER = re.compile(rf"Process (?P<pid>\d{1, 9}) has (?P<size>{_SIZE}) memory in use")
_ALLOWED = re.compile(rf"(?P<size>{_SIZE}) allowed;")
_ALLOCATED = re.compile(rf"Of the allocated memory (?P<size>{_SIZE}) is allocated by PyTorch")
_PRIVATE = re.compile(rf"with (?P<size>{_SIZE}) allocated in private pools")
_CACHED = re.compile(rf"and (?P<size>{_SIZE}) is reserved by PyTorch but unallocated")
_HOST = re.compile(
    r"DefaultCPUAllocator: (?:can't allocate memory|not enough memory): you tried to allocate (?P<size>\d{1,18}) bytes"
)
_CUDA = re.compile(r"(?:CUDA|HIP) error: out of memory|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY")
_LIBRARY = re.compile(
    r"(?P<name>CUBLAS)_STATUS_ALLOC_FAILED|(?P<name2>CUDNN)_STATUS_ALLOC_FAILED"
    r"|(?P<name3>NCCL)[^\n]{0,200}(?:Cuda failure (?:2 )?'out of memory')"
)

# A cheap test of a line for the beginning of any message.
START: Final = re.compile(
    r"out of memory|_STATUS_ALLOC_FAILED|DefaultCPUAllocator: |cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY"
)


def parse_message(text: str) -> OomMessage | None:
    """The first out-of-memory message in `text`, or None where there is none. Line breaks do not matter."""
    text = " ".join(text.split())
    head = _HEAD.search(text)
    if head is not None:
        return _allocator(text[head.start() :], head)
    host = _HOST.search(text)
    if host is not None:
        return OomMessage("host", requested=int(host["size"]))
    library = _LIBRARY.search(text)
    if library is not None:
        name = next(group for group in library.groups() if group)
        return OomMessage("library", library={"CUBLAS": "cuBLAS", "CUDNN": "cuDNN"}.get(name, name))
    if _CUDA.search(text) is not None:
        return OomMessage("cuda")
    return None


def _bytes(match: re.Match[str] | None, group: str = "size") -> int | None:
    if match is None or match[group] is None:
        return None
    text = match[group]
    return -parse_bytes(text[1:]) if text.startswith("-") else parse_bytes(text)


def _allocator(text: str, head: re.Match[str]) -> OomMessage:
    backend = head["backend"].upper()
    # Where logs run messages together, the next one is not this one's.
    following = _HEAD.search(text, 1)
    if following is not None:
        text = text[: following.start()]
    old = _OLD.search(text)
    if old is not None:
        allocated, reserved = _bytes(old, "allocated"), _bytes(old, "reserved")
        assert allocated is not None
        assert reserved is not None
        return OomMessage(
            "allocator",
            requested=_bytes(old),
            device=int(old["device"]),
            total=_bytes(old, "total") or None,
            free=_bytes(old, "free"),
            allocated=allocated,
            cached=max(0, reserved - allocated),
            allowed=_bytes(old, "allowed"),
            backend=backend,
        )
    card = _CARD.search(text)
    found = OomMessage("allocator", requested=_bytes(head), backend=backend)
    if card is not None:
        found = replace(
            found, device=int(card["device"]), total=_bytes(card, "total") or None, free=_bytes(card, "free")
        )
    return replace(
        found,
        allocated=_bytes(_ALLOCATED.search(text)),
        cached=_bytes(_CACHED.search(text)),
        process=_believable(_bytes(_PROCESS.search(text)), found.total),
        allowed=_bytes(_ALLOWED.search(text)),
        private=_bytes(_PRIVATE.search(text)),
        others=_others(text),
    )


def _others(text: str) -> tuple[Other, ...]:
    return tuple(Other(int(m["pid"]), _bytes(m) or 0) for m in _OTHER.finditer(text))


def _believable(size: int | None, total: int | None) -> int | None:
    """NVML reports an absurd figure where it does not know (seen in WSL): that is no figure."""
    return None if size is not None and total is not None and size > 4 * total else size
