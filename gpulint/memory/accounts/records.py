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
        own = self.process
        if own is None:
            own = self.reserved + sum(entry.bytes for entry in self.outside)
        return self.card.used - own

    def to_json(self) -> dict[str, Any]:
        """Plain figures, with those that follow from others."""
        derived = {
            "reserved": self.reserved,
            "unexplained": self.unexplained,
            "elsewhere": self.elsewhere,
        }
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
_NAME, _SIZE = 32, 12
REST = "kernels loaded since, handles of cuBLAS and cuDNN, other libraries"


def lines(account: Account) -> list[str]:
    """A line for each entry, with the sums that they add up to."""
    head = f"process {account.pid}"
    if account.missing:
        return [f"{head}: no CUDA memory to account for: {account.missing}"]
    return [f"{head} on cuda:{account.device} ({account.name})", *_body(account)]


def _body(account: Account) -> Iterator[str]:
    for entry in account.inside:
        yield _entry(entry)
    yield _line("= reserved by torch", account.reserved)
    yield from map(_entry, account.outside)
    if account.unexplained is not None and account.process is not None:
        yield _line("unexplained", account.unexplained, _doubt(account))
        yield _line("= the process", account.process, account.source)
    yield from _card(account)
    if account.pinned is not None:
        yield _line("pinned host memory", account.pinned, "on no card; torch's cache of it")
    for note in account.notes:
        yield f"  note: {note}"


def _doubt(account: Account) -> str:
    if account.unexplained is not None and account.unexplained < 0:
        return "more is told above than the process has: the card changed meanwhile, or a context shares its memory"
    known = {entry.name for entry in account.outside}
    return REST if "CUDA context" in known else f"the CUDA context, {REST}"


def _card(account: Account) -> Iterator[str]:
    card, rest = account.card, account.elsewhere
    if card is None or rest is None:
        return
    if account.process is None:
        known = {entry.name for entry in account.outside}
        context = "" if "CUDA context" in known else "this process's CUDA context, "
        yield _line("unexplained", rest, f"{context}{REST}, and other processes: {account.source}")
    else:
        yield from _others(account, rest)
    yield _line("= in use on the card", card.used)
    if card.driver:
        yield _line("kept by the driver", card.driver)
    yield _line("free", card.free)
    yield _line("= the card", card.total)


def _others(account: Account, rest: int) -> Iterator[str]:
    others = account.card.tenants if account.card is not None else ()
    for one in others:
        if one.bytes is not None:
            yield _line(f"process {one.pid}", one.bytes)
            rest -= one.bytes
    if rest or not others:
        name = "listed for no process" if rest else "other processes"
        yield _line(
            name, rest, "what the driver spends on processes, or one that it does not list" if rest else ""
        )


def _entry(entry: Entry) -> str:
    return _line(entry.name, entry.bytes, "; ".join(filter(None, (_HOW[entry.how], entry.note))))


def _line(name: str, size: int, note: str = "") -> str:
    indent = "" if name.startswith("=") else "  "
    return f"{indent + name:<{_NAME}}{format_bytes(size):>{_SIZE}}  {note}".rstrip()
