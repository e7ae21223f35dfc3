"""Graphics cards as a forecast needs them: what they can hold, and what CUDA and its libraries take on them. Data.

`measured` cards were measured by `gpulint forecast --calibrate` on one; of the others the size is known and the rest is
taken from the measured card, which their intervals say.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Final

from gpulint.allocator.cards import MEMORY, plain
from gpulint.runtime.record.records import Record
from gpulint.units import format_bytes, parse_bytes

MIB: Final = 1 << 20
GIB: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Card(Record):
    """One kind of card; sizes in bytes.

    `memory` is what the driver lends to a process at most. `context` is what a process takes besides torch's allocator:
    the CUDA context and the kernels of torch and its libraries. `cublas_workspace` is what a handle of cuBLAS takes from
    torch's allocator, `cublaslt_workspace` that of cublasLt.
    """

    name: str
    label: str
    memory: int
    capability: tuple[int, int]
    processors: int
    context: int = 767 * MIB
    cublas_workspace: int = 8_519_680
    cublaslt_workspace: int = MIB
    measured: bool = False
    known: bool = True


class UnknownCard(ValueError):
    """No card has this name, and it is no size either."""


H200: Final = Card(
    "h200", "NVIDIA H200", MEMORY["H200"], (9, 0), 132,
    cublas_workspace=32 * MIB, cublaslt_workspace=MIB, measured=True,
)  # fmt: skip

CARDS: Final[dict[str, Card]] = {
    card.name: card
    for card in (
        H200,
        replace(H200, name="h100", label="NVIDIA H100 80GB", memory=MEMORY["H100"], measured=False),
        Card("a100-80", "NVIDIA A100 80GB", MEMORY["A100-80GB"], (8, 0), 108),
        Card("a100-40", "NVIDIA A100 40GB", MEMORY["A100-40GB"], (8, 0), 108),
        Card("l4", "NVIDIA L4", MEMORY["L4"], (8, 9), 58),
        Card("t4", "Tesla T4", MEMORY["T4"], (7, 5), 40),
        Card("v100", "Tesla V100 32GB", MEMORY["V100-32GB"], (7, 0), 80),
        Card("rtx4090", "NVIDIA GeForce RTX 4090", MEMORY["RTX4090"], (8, 9), 128),
        Card("rtx3090", "NVIDIA GeForce RTX 3090", MEMORY["RTX3090"], (8, 6), 82),
    )
}


def card_for(text: str) -> Card:
    """The card with this name, that of a file which `--calibrate` wrote, or one of this size ("24GiB") of which nothing else is
    known. Raises UnknownCard."""
    if text.endswith(".json"):
        return _card_in(text)
    known = next((card for card in CARDS.values() if plain(card.name) == plain(text)), None)
    if known is not None:
        return known
    try:
        size = parse_bytes(text)
    except ValueError:
        size = 0
    if size < GIB or text.strip().isdigit():
        raise UnknownCard(f'no card is known as "{text}"; one of {", ".join(CARDS)}, or a size like 24GiB')
    return Card(text.strip(), f"a card of {format_bytes(size)}", size, (8, 0), 108, known=False)


def _card_in(path: str) -> Card:
    try:
        with open(path, encoding="utf-8") as source:
            return Card.from_json(json.load(source))
    except OSError as error:
        raise UnknownCard(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnknownCard(f"{path} is not what gpulint forecast --calibrate writes") from error
