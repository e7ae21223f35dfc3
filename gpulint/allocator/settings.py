"""Sizes and settings of torch's CUDA caching allocator, as its model uses them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gpulint.memory.alloc_conf import parse

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


def parse_settings(text: str) -> Settings:
    """Settings from their text; keys that do not change where blocks go are ignored. Raises ValueError."""
    given = parse(text)
    return Settings(
        expandable=given.get("expandable_segments", "").lower() == "true",
        max_split=int(given["max_split_size_mb"]) * MIB if "max_split_size_mb" in given else UNLIMITED,
        max_non_split_rounding=int(given.get("max_non_split_rounding_mb", "20")) * MIB,
        divisions=_divisions(given.get("roundup_power2_divisions", "0")),
        gc_threshold=float(given.get("garbage_collection_threshold", "0")),
    )


def _divisions(text: str) -> tuple[int, ...]:
    """One number for all sizes, or `[256:1,512:2,>:4]` by the upper bound of the size in MiB."""
    if not text.startswith("["):
        return (int(text),) * 16
    found = [0] * 16
    last = 0
    for part in text.strip("[]").split(","):
        bound, _, value = part.partition(":")
        if bound == ">":
            found[last:] = [int(value)] * (16 - last)
            break
        index = min(15, max(0, int(bound).bit_length() - 1))
        if last == 0:
            found[:index] = [int(value)] * index
        found[index] = int(value)
        if last and index > last:
            found[last:index] = [int(value)] * (index - last)
        last = index + 1
    return tuple(found)
