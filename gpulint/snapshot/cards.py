"""What torch may reserve on a card, by the card's name."""

from __future__ import annotations

import re
from typing import Final

# GiB that torch's out-of-memory messages call the card's total. Public messages differ by up to 1 % between drivers; the
# H200's is measured.
CARDS: Final = {
    "T4": 14.6,
    "V100-16GB": 15.8,
    "V100-32GB": 31.7,
    "A10G": 22.0,
    "L4": 22.0,
    "RTX3090": 23.6,
    "RTX4090": 23.6,
    "A100-40GB": 39.4,
    "L40S": 44.4,
    "A100-80GB": 79.1,
    "H100": 79.1,
    "H200": 139.8,
    "B200": 178.3,
}
CONTEXT: Final = 0.5  # GiB of it for the CUDA context, which is not torch's to reserve


def capacity_of(name: str) -> int | None:
    """Bytes; None for a card that is not listed."""
    wanted = _plain(name)
    found = [size for card, size in CARDS.items() if _plain(card) == wanted]
    return round((found[0] - CONTEXT) * 2**30) if found else None


def _plain(name: str) -> str:
    return re.sub(r"nvidia|geforce|tesla|[^a-z0-9]", "", name.lower())
