"""What cards hold, by their names."""

from __future__ import annotations

import re
from typing import Final

_GIB: Final = 2**30

# Bytes that torch's out-of-memory messages call the card's total. Public messages differ by up to 1 % between drivers; the
# H200's is measured.
MEMORY: Final[dict[str, int]] = {
    "T4": int(14.58 * _GIB),
    "V100-16GB": int(15.8 * _GIB),
    "V100-32GB": int(31.73 * _GIB),
    "A10G": int(22.0 * _GIB),
    "L4": int(22.03 * _GIB),
    "RTX3090": int(23.57 * _GIB),
    "RTX4090": int(23.52 * _GIB),
    "A100-40GB": int(39.39 * _GIB),
    "L40S": int(44.4 * _GIB),
    "A100-80GB": int(79.15 * _GIB),
    "H100": int(79.18 * _GIB),
    "H200": 150_109_880_320,
    "B200": int(178.3 * _GIB),
}


def plain(name: str) -> str:
    """A card's name as names are compared: without maker, family and unit."""
    return re.sub(r"nvidia|geforce|tesla|gb$|[^a-z0-9]", "", name.strip().lower())


def memory_of(name: str) -> int | None:
    """Bytes; None for a card that is not listed."""
    wanted = plain(name)
    return next((size for card, size in MEMORY.items() if plain(card) == wanted), None)
