"""Sizes and settings of torch's CUDA caching allocator, as its model uses them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gpulint.memory.alloc_conf import parse, refusal
from gpulint.units import options

KIB: Final = 1024
MIB: Final = 1024 * KIB
MIN_BLOCK: Final = 512
SMALL_LIMIT: Final = MIB  # up to here a request is served from the small pool
SMALL_SEGMENT: Final = 2 * MIB
LARGE_SEGMENT: Final = 20 * MIB
MIN_LARGE: Final = 10 * MIB  # from here a request gets a segment of its own size
ROUND_LARGE: Final = 2 * MIB
UNLIMITED: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Settings:
    """Allocator settings in bytes; `parse_settings` reads them from the text of PYTORCH_CUDA_ALLOC_CONF.

    `divisions` are the roundup_power2_divisions for sizes from 1 MiB to 64 GiB, one a power of two.
    """

    expandable: bool = False
    max_split: int = UNLIMITED
    max_non_split_rounding: int = 20 * MIB
    divisions: tuple[int, ...] = (0,) * 16
    gc_threshold: float = 0.0
    large_segment: int = LARGE_SEGMENT


def parse_settings(text: str) -> Settings:
    """Settings from their text; keys that do not change where blocks go are ignored. Raises ValueError for what cannot be read."""
    given = parse(text)

    def size(key: str, default: int) -> int:
        return _number(key, given[key]) * MIB if key in given else default

    threshold = given.get("garbage_collection_threshold", "0")
    try:
        gc_threshold = float(threshold)
    except ValueError:
        raise ValueError(f"garbage_collection_threshold:{threshold} is no fraction") from None
    return Settings(
        expandable=given.get("expandable_segments", "").lower() == "true",
        max_split=size("max_split_size_mb", UNLIMITED),
        max_non_split_rounding=size("max_non_split_rounding_mb", 20 * MIB),
        divisions=_divisions(given.get("roundup_power2_divisions", "0")),
        gc_threshold=gc_threshold,
        large_segment=size("large_segment_size_mb", LARGE_SEGMENT),
    )


def check_settings(text: str) -> None:
    """Raises ValueError for what torch refuses, and for what the model cannot play."""
    refused = refusal(text)
    if refused is not None:
        raise ValueError(refused)
    parse_settings(text)
    if parse(text).get("backend", "native") != "native":
        raise ValueError("the model is one of torch's own allocator, and cudaMallocAsync is the driver's")


def _number(key: str, value: str) -> int:
    if not value.isdecimal():
        raise ValueError(f"{key}:{value} is no whole number")
    return int(value)


def _divisions(text: str) -> tuple[int, ...]:
    """One number for all sizes, or `[256:1,512:2,>:4]` by the size in MiB from which on: the first is for all below as well, each other
    for its own power of two alone, and that of `>` for all above the last."""
    key = "roundup_power2_divisions"
    if not text.startswith("["):
        return (_number(key, text),) * 16
    found = [0] * 16
    last: int | None = None
    for bound, value in options(text.strip("[]")):
        number = _number(key, value)
        if bound == ">":
            first = (last or 0) + 1
            found[first:] = [number] * (16 - first)
            continue
        index = min(15, max(0, _number(key, bound).bit_length() - 1))
        if last is None:
            found[:index] = [number] * index
        found[index] = number
        last = index
    return tuple(found)
