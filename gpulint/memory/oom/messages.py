"""Out-of-memory messages of every torch since 0.4 (and of the libraries around it), read into figures."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from gpulint.units import parse_bytes

Source = Literal["allocator", "cuda", "library", "host"]


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


# No card has a quadrillion of anything: a longer number is none of torch's.
_SIZE: Final = r"(?P<size>-?(?<!\d)\d{1,15}(?:\.\d{1,9})?\s{0,2}(?:bytes|[KMGTPE]i?B|B))"
# Where a message begins, with what may stand between its name and the request: Apple's has its figures there.
_HEAD = re.compile(
    r"\b(?P<backend>CUDA|HIP|XPU|NPU|MPS)\b(?: backend)? out of memory\b(?:.{0,200}?)Tried to allocate"
    r"|\bAllocation on device (?P<device>\d{1,9})? ?would exceed allowed memory"
    r"|\bTried to allocate .{1,60}? total capac",
    re.IGNORECASE,
)
_NEXT = re.compile(
    r"\b\w{1,12} (?:backend )?out of memory\b.{0,200}?Tried to allocate|Allocation on device", re.I
)
_DEVICE = re.compile(r"\b[A-Z]PU +(?P<device>\d{1,9})\b|\bAllocation on device (?P<device2>\d{1,9})\b")
# Each figure by the words that stand beside it, whatever lies between the figures: parentheses and semicolons up to torch
# 2.0, sentences since, lines with colons from `cudaMallocAsync`. Before 1.4 "cached" was what no tensor is in.
_FIGURES: Final = {
    name: tuple(re.compile(words.replace("<size>", _SIZE), re.IGNORECASE) for words in forms)
    for name, forms in {
        "requested": (r"Tried to allocate (?:more than )?<size>", r"\bRequested *: <size>"),
        "total": (r"<size> total capacity", r"total capaci?ty of <size>", r"Device limit *: <size>"),
        "free": (r"\(according to CUDA\) *: <size>", r"<size> free\b", r"of which <size> is free"),
        "allocated": (
            r"<size> already allocated",
            r"<size> is allocated by PyTorch",
            r"Currently allocated *: <size>",
        ),
        "reserved": (r"<size> reserved in total by PyTorch", r"\(MPS allocated: <size>"),
        "cached": (r"<size> is reserved by PyTorch but unallocated", r"<size> cached\b"),
        "process": (r"this process has <size> memory in use",),
        "beside": (r"other allocations: <size>",),
        "allowed": (
            r"<size> allowed\b",
            r"max allowed: <size>",
            r"user-supplied memory fraction\) *: <size>",
        ),
        "private": (r"with <size> allocated in private pools",),
    }.items()
}
_OTHER = re.compile(rf"Process (?P<pid>\d{{1,9}}) has {_SIZE} memory in use")
_HOST = (
    re.compile(r"you tried to allocate (?P<size>\d{1,18}) bytes"),
    re.compile(r"not enough memory: you tried to allocate (?P<size>\d{1,15} ?[KMGT]?B)"),
    re.compile(
        r"MemoryError: Unable to allocate (?P<size>\d{1,15}(?:\.\d{1,9})? ?[KMGTPE]?i?B) for an array"
    ),
)
_CUDA = re.compile(
    r"\b(?:CUDA|HIP|XPU)\b[\w ]{0,20}\berror\b[\w ():]{0,20}\bout of memory"
    r"|\berror=2 *: *out of memory|Triton Error \[\w+\]: out of memory"
    r"|OutOfMemoryError: Allocation on device|Error: (?:CUDA|HIP|XPU|NPU) out of memory"
    r"|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY|hipErrorOutOfMemory|_OUT_OF_DEVICE_MEMORY",
    re.IGNORECASE,
)
_LIBRARY = re.compile(
    r"\b(?P<name>(?:CU|HIP)[A-Z]+)_(?:STATUS_)?ALLOC(?:ATION)?_FAILED"
    r"|(?P<nccl>NCCL)[^\n]{0,200}(?:Cuda failure (?:2 )?'out of memory')"
)

# A cheap test of a line for the beginning of any message.
START: Final = re.compile(
    r"out of memory|Tried to allocate|tried to allocate|Unable to allocate|Allocation on device|ALLOC(?:ATION)?_FAILED"
    r"|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY|hipErrorOutOfMemory|_OUT_OF_DEVICE_MEMORY"
)


def parse_message(text: str) -> OomMessage | None:
    """The first out-of-memory message in `text`, or None where there is none. Line breaks do not matter."""
    text = " ".join(text.split())
    if (head := _HEAD.search(text)) and (found := _allocator(text[head.start() :], head)):
        return found
    for pattern in _HOST:
        if (host := pattern.search(text)) is not None:
            return OomMessage("host", requested=parse_bytes(host["size"]))
    if (library := _LIBRARY.search(text)) is not None:
        name = library["nccl"] or library["name"]
        return OomMessage("library", library=re.sub("^CU", "cu", name))  # cuBLAS, cuDNN
    return OomMessage("cuda") if _CUDA.search(text) is not None else None


def _allocator(text: str, head: re.Match[str]) -> OomMessage | None:
    # Where logs run messages together, the next one is not this one's.
    following = _NEXT.search(text, head.end() - head.start())
    figures = _figures(text[: following.start()] if following is not None else text)
    requested = figures.get("requested")
    if requested is None:
        return None
    names = ("total", "allowed", "allocated", "cached", "reserved", "process", "free")
    total, allowed, allocated, cached, reserved, process, free = map(figures.get, names)
    if allocated is not None and cached is None and reserved is not None:
        cached = max(0, reserved - allocated)
    backend = (head["backend"] or "CUDA").upper()
    if backend == "MPS" and reserved is not None and allowed is not None:
        # It counts what it has reserved, and does not tell what of it no tensor is in; its limit is all that there is.
        allocated, cached, process = reserved, 0, reserved + figures.get("beside", 0)
        total, free, allowed = allowed, max(0, allowed - process), None
    device = _DEVICE.search(text)
    return OomMessage(
        "allocator",
        requested=requested,
        device=int(device["device"] or device["device2"]) if device is not None else None,
        total=total,
        free=free,
        allocated=allocated,
        cached=cached,
        process=_believable(process, total),
        allowed=_believable(allowed, total),
        private=figures.get("private"),
        others=tuple(Other(int(one["pid"]), parse_bytes(one["size"])) for one in _OTHER.finditer(text)),
        backend=backend,
    )


def _figures(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, forms in _FIGURES.items():
        size = next((match["size"] for form in forms if (match := form.search(text)) is not None), "")
        if size:
            found[name] = parse_bytes(size.removeprefix("-")) * (-1 if size.startswith("-") else 1)
    return found


def _believable(size: int | None, total: int | None) -> int | None:
    """NVML reports an absurd figure where it does not know (seen in WSL), and the limit of a process that has none is one too:
    that is no figure."""
    return None if size is not None and total is not None and size > 4 * total else size
