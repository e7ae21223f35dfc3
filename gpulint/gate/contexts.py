"""Processes that have a context on a card that is another's: what is there, and what most often puts it there."""

from __future__ import annotations

import os
from collections.abc import Mapping

from gpulint.runtime.record.gate import ForeignContext
from gpulint.runtime.record.peaks import CardUse
from gpulint.runtime.record.result import RankResult, RunResult
from gpulint.units import format_bytes

Sizes = Mapping[tuple[str, int], int]  # (the card's uuid, process) -> bytes, as the driver tells

REMEDY = (
    "call `torch.cuda.set_device(local_rank)` before anything that uses CUDA, and load with `map_location`"
)


def foreign_contexts(run: RunResult, sizes: Sizes) -> tuple[ForeignContext, ...]:
    """Each context of a rank on the card that another rank computes on, and it does not itself."""
    owners: dict[str, int] = {}
    for rank in run.ranks:
        for card in rank.cards:
            if card.own:
                owners.setdefault(_identity(card), rank.rank)
    return tuple(
        _foreign(rank, card, owners[_identity(card)], sizes.get((_identity(card), rank.pid)))
        for rank in run.ranks
        for card in rank.cards
        if card.context and not card.own and _identity(card) in owners
    )


def _identity(card: CardUse) -> str:
    """The same for every process: its number depends on which cards a process is shown."""
    return plain(card.uuid) or f"{card.index} {card.name}"


def plain(uuid: str) -> str:
    """A card's uuid as torch writes it; NVML begins it with GPU-."""
    return uuid.removeprefix("GPU-").lower()


def _foreign(rank: RankResult, card: CardUse, owner: int, size: int | None) -> ForeignContext:
    taken = "what it takes there the driver does not tell" if size is None else f"{format_bytes(size)}"
    tensors = f", {format_bytes(card.allocated)} of it in tensors" if card.allocated else ""
    first = ""
    if rank.first_use is not None:
        where = rank.first_use
        first = f"; it used CUDA first at {os.path.basename(where.file)}:{where.line} in {where.function}"
    text = (
        f"rank {rank.rank} has a CUDA context on GPU {card.index}, the card of rank {owner} ({taken}{tensors}){first}: "
        f"{REMEDY}"
    )
    return ForeignContext(rank.rank, card.index, card.name, owner, size, text)
