"""What torch may reserve on a card, by the card's name."""

from __future__ import annotations

from typing import Final

from gpulint.allocator.cards import memory_of

CONTEXT: Final = 2**29  # bytes of a card for the CUDA context, which is not torch's to reserve


def capacity_of(name: str) -> int | None:
    """Bytes; None for a card that is not listed."""
    memory = memory_of(name)
    return None if memory is None else memory - CONTEXT
