"""What an account says, as data and for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from gpulint.runtime.record.records import Record
from gpulint.units import format_bytes


class How(str, Enum):
    """How a figure came about."""

    COUNTED = "counted"  # by torch's allocator, byte for byte
    BY_SIZE = "by size"  # recognised by nothing but its size, and that no tensor lies there
    BOOKED = "booked"  # the card's use before and after a stretch of the program
    MEASURED = "measured"  # in a process of its own


@dataclass(frozen=True, slots=True)
class Entry(Record):
    """One line of an account: `bytes`, how they were found out, and what is to be known about them."""

    name: str
    bytes: int
    how: How = How.COUNTED
    note: str = ""


@dataclass(frozen=True, slots=True)
class Tenant(Record):
    """Another process on the card; `bytes` is None where the driver does not tell."""

    pid: int
    bytes: int | None


@dataclass(frozen=True, slots=True)
class Card(Record):
    """What the driver says of the whole card, in bytes. `tenants` are its processes, without the one whose account it is
    where that is known by its number; `driver` is what it keeps for itself and counts as used; 0 where it
    does not tell it apart."""

    used: int
    total: int
    tenants: tuple[Tenant, ...] = ()
    driver: int = 0

    @property
    def free(self) -> int:
        return max(0, self.total - self.used - self.driver)


@dataclass(frozen=True, slots=True)
class Account(Record):
    """The memory of one process on one card, in bytes.

    `inside` are the parts of `reserved`, what torch's allocator took from the driver; they add up to it. `process` is all
    that the process has on the card, None where nobody tells; `source` says who does, or why not. `outside` are the known
    parts of the rest. `pinned` is page-locked host memory, which is on no card. Without CUDA `missing` says why, and all
    figures are 0.
    """

    pid: int
    device: int = -1
    name: str = ""
    uuid: str = ""
    inside: tuple[Entry, ...] = ()
    outside: tuple[Entry, ...] = ()
    process: int | None = None
    source: str = ""
    card: Card | None = None
    pinned: int | None = None
    notes: tuple[str, ...] = ()
    missing: str = ""

    @property
    def reserved(self) -> int:
        return sum(entry.bytes for entry in self.inside)

    @property
    def unexplained(self) -> int | None:
        """What the process has on the card and no entry tells; below 0 where the entries tell more than there is. None where it
        is not known how much the process has."""
        if self.process is None:
            return None
        return self.process - self.reserved - sum(entry.bytes for entry in self.outside)

    @property
    def elsewhere(self) -> int | None:
        """What is in use on the card and is not this process's; where that is not known, what no entry tells."""
        if self.card is None:
            return None
        told = self.reserved + sum(entry.bytes for entry in self.outside)
        return self.card.used - (told if self.process is None else self.process)

    def to_json(self) -> dict[str, Any]:
        """Plain figures, with those that follow from others."""
        derived = {name: getattr(self, name) for name in ("reserved", "unexplained", "elsewhere")}
        return {**Record.to_json(self), **derived}

    def __str__(self) -> str:
        return "\n".join(lines(self))


# -- for people ------------------------------------------------------------------------------------------------

_HOW = {
    How.COUNTED: "",
    How.BY_SIZE: "told by their size",
    How.BOOKED: "measured when it began",
    How.MEASURED: "measured",
}
REST = "kernels loaded since, handles of cuBLAS and cuDNN, other libraries"
_Row = tuple[str, int, str]  # name, bytes, note


def lines(account: Account) -> list[str]:
    """A line for each entry, with the sums that they add up to."""
    head = f"process {account.pid}"
    if account.missing:
        return [f"{head}: no CUDA memory to account for: {account.missing}"]
    rows = [
        (f"{'' if name.startswith('=') else '  '}{name}", format_bytes(size), note)
        for name, size, note in _rows(account)
    ]
    return [
        f"{head} on cuda:{account.device} ({account.name})",
        *(f"{name:<32}{size:>12}  {note}".rstrip() for name, size, note in rows),
        *(f"  note: {note}" for note in account.notes),
    ]


def _rows(account: Account) -> Iterator[_Row]:
    yield from map(_entry, account.inside)
    yield "= reserved by torch", account.reserved, ""
    yield from map(_entry, account.outside)
    known = any(entry.name == "CUDA context" for entry in account.outside)
    if account.unexplained is not None and account.process is not None:
        rest = REST if known else f"the CUDA context, {REST}"
        if account.unexplained < 0:
            rest = "more is told above than the process has: the card changed meanwhile, or a context shares its memory"
        yield "unexplained", account.unexplained, rest
        yield "= the process", account.process, account.source
    card, left = account.card, account.elsewhere
    if card is not None and left is not None:
        if account.process is None:
            context = "" if known else "this process's CUDA context, "
            yield "unexplained", left, f"{context}{REST}, and other processes: {account.source}"
        else:
            yield from _others(card, left)
        yield "= in use on the card", card.used, ""
        if card.driver:
            yield "kept by the driver", card.driver, ""
        yield "free", card.free, ""
        yield "= the card", card.total, ""
    if account.pinned is not None:
        yield "pinned host memory", account.pinned, "on no card; torch's cache of it"


def _others(card: Card, left: int) -> Iterator[_Row]:
    for one in card.tenants:
        if one.bytes is not None:
            yield f"process {one.pid}", one.bytes, ""
            left -= one.bytes
    if left:
        what = "what the driver spends on processes, or one that it does not list"
        yield "listed for no process", left, what
    elif not card.tenants:
        yield "other processes", 0, ""


def _entry(entry: Entry) -> _Row:
    return entry.name, entry.bytes, "; ".join(filter(None, (_HOW[entry.how], entry.note)))
