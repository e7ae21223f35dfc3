"""Capacity or fragmentation: the arithmetic of an out-of-memory message.

When the caching allocator gives up it has already returned every block that it could return. What is still
cached then lies beside tensors in the same segments and cannot serve the request. So the question is whether
free memory and cache together would have been enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from gpulint.memory.oom import advice
from gpulint.memory.oom.advice import Advice
from gpulint.memory.oom.messages import OomMessage
from gpulint.units import format_bytes

Kind = Literal["shape", "capacity", "fragmentation", "other-processes", "limit", "library", "host", "unclear"]

MIB: Final = 1024**2

_FAR_ABOVE: Final = 2  # times the card: no batch that was meant is so large
_HEADLINES: Final[dict[Kind, str]] = {
    "shape": "a shape is wrong: one tensor is larger than any card would take",
    "capacity": "capacity: the program needs more memory than the card has",
    "fragmentation": "fragmentation: there is enough memory, but not in one piece",
    "other-processes": "other processes hold the memory that is missing",
    "limit": "the limit set for this process is reached; the card has room",
    "library": "a library could not allocate beside torch's allocator",
    "host": "the host's memory is exhausted, not the GPU's",
    "unclear": "not clear from the message alone",
}
_ADVICE: Final[dict[Kind, tuple[Advice, ...]]] = {
    "shape": advice.SHAPE,
    "capacity": advice.CAPACITY,
    "fragmentation": advice.FRAGMENTATION,
    "other-processes": advice.SHARED,
    "limit": advice.LIMITED,
    "library": advice.LIBRARY,
    "host": advice.HOST,
    "unclear": advice.UNCLEAR,
}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What an out-of-memory error was about. `arithmetic` shows the sum line by line; `missing` is how many
    bytes were short with the whole cache given back (negative: so many would have been left over)."""

    kind: Kind
    message: OomMessage
    arithmetic: tuple[str, ...]
    missing: int | None = None
    retries: int | None = None

    @property
    def headline(self) -> str:
        return _HEADLINES[self.kind]

    @property
    def retried(self) -> str:
        """In words, how often the allocator had retried; "" where it had not, or the count is not known."""
        if not self.retries:
            return ""
        return f"the allocator had emptied its cache and retried {'once' if self.retries == 1 else f'{self.retries} times'} before"

    @property
    def advice(self) -> tuple[Advice, ...]:
        return _ADVICE[self.kind]

    def to_json(self) -> dict[str, Any]:
        from dataclasses import asdict

        return {
            "kind": self.kind,
            "headline": self.headline,
            "message": asdict(self.message),
            "arithmetic": list(self.arithmetic),
            "missing": self.missing,
            "retries": self.retries,
            "advice": [{"text": each.text, "measured": each.measured} for each in self.advice],
        }

    def lines(self) -> list[str]:
        """The whole diagnosis as text lines."""
        shown = [self.headline, *(f"  {line}" for line in self.arithmetic)]
        if self.retries:
            shown.append(f"  {self.retried}")
        shown.append("what to try, in order of measured benefit:")
        shown += [f"  {number}. {each}" for number, each in enumerate(self.advice, 1)]
        return shown

    def __str__(self) -> str:
        return "\n".join(self.lines())


def segment_size(size: int) -> int:
    """What the allocator asks the driver for when it needs a new segment for `size` bytes."""
    if size <= MIB:
        return 2 * MIB
    if size < 10 * MIB:
        return 20 * MIB
    return -(-size // (2 * MIB)) * 2 * MIB


def diagnose(message: OomMessage, retries: int | None = None) -> Diagnosis:
    """Tell what a message is about. Sizes in messages are rounded to 0.01 of their unit; a difference smaller
    than that decides nothing."""
    if message.source in ("host", "library"):
        return _without_figures("host" if message.source == "host" else "library", message, retries)
    requested, free, allocated, cached = message.requested, message.free, message.allocated, message.cached
    if requested is None or free is None or allocated is None or cached is None:
        return _without_figures("unclear", message, retries)
    asked = segment_size(requested)
    usable, lines = _usable(message, free, allocated + cached)
    missing = asked - usable - cached
    lines = [
        f"requested {format_bytes(requested)}"
        + (
            f", for which the allocator needs {format_bytes(asked)} from the driver"
            if asked != requested
            else ""
        ),
        *lines,
        f"cached {format_bytes(cached)}: reserved by torch, in no tensor, in pieces too small or shared",
        f"{format_bytes(usable)} + {format_bytes(cached)} = {format_bytes(usable + cached)}"
        f" {'<' if missing > 0 else '>='} {format_bytes(asked)}: "
        + (f"{format_bytes(missing)} missing" if missing > 0 else "it would have fitted in one piece"),
    ]
    kind = _kind(message, asked, usable, cached, missing)
    return Diagnosis(kind, message, (*lines, *_remarks(message, kind, missing)), missing, retries)


def _usable(message: OomMessage, free: int, reserved: int) -> tuple[int, list[str]]:
    if message.allowed is None:
        return free, [f"free on the card {format_bytes(free)}" + _of(message.total)]
    room = max(0, message.allowed - reserved)
    return min(free, room), [
        f"free on the card {format_bytes(free)}{_of(message.total)}; this process may use"
        f" {format_bytes(message.allowed)} and has reserved {format_bytes(reserved)}: {format_bytes(min(free, room))}"
    ]


def _of(total: int | None) -> str:
    return "" if total is None else f" of {format_bytes(total)}"


def _kind(message: OomMessage, asked: int, usable: int, cached: int, missing: int) -> Kind:
    assert message.free is not None
    if message.total is not None and asked > _FAR_ABOVE * message.total:
        return "shape"
    if missing <= 0:
        # More free than asked for, and refused all the same: then the cache is not the reason.
        return "unclear" if usable >= asked or not cached else "fragmentation"
    if message.allowed is not None and message.free + cached >= asked:
        return "limit"
    if foreign(message) >= missing:
        return "other-processes"
    return "capacity"


def own_memory(message: OomMessage) -> int | None:
    """What this process holds on the card, CUDA context included, as the message says it.

    In a container the driver's process numbers are the host's, and the message lists this process among the
    others: then it is the one that holds at least what torch reserved, and not much more.
    """
    if message.process is not None or message.reserved is None:
        return message.process
    fitting = [o.bytes for o in message.others if -MIB * 16 <= o.bytes - message.reserved <= 2048 * MIB]
    return min(fitting, default=None)


def foreign(message: OomMessage) -> int:
    """Bytes of other processes on the card, 0 where the message does not tell."""
    own = own_memory(message)
    listed = sum(other.bytes for other in message.others)
    if message.process is None and own is not None:
        listed -= own
    if own is None or message.total is None or message.free is None:
        return listed
    # Processes of other containers are not listed, but their memory is missing from the sum.
    unlisted = message.total - message.free - own - listed
    return listed + (unlisted if unlisted > 1024 * MIB else 0)


def _remarks(message: OomMessage, kind: Kind, missing: int) -> list[str]:
    lines = []
    if message.total is not None and message.requested is not None and message.requested > message.total:
        times = message.requested / message.total
        much = f"{times:,.0f} times the card" if times >= 2 else "larger than the card"
        lines.append(f"the request alone, one piece, is {much}: look at the shapes first")
    others = foreign(message)
    if others:
        lines.append(f"other processes hold {format_bytes(others)} of the card")
    own = own_memory(message)
    if own is not None and message.reserved is not None and own - message.reserved > 64 * MIB:
        lines.append(
            f"{format_bytes(own - message.reserved)} of this process lie outside torch's allocator (CUDA context,"
            " NCCL, cuDNN)"
        )
    if message.private:
        lines.append(f"{format_bytes(message.private)} are bound to private pools (CUDA graphs)")
    if kind == "capacity" and message.cached and message.cached > missing:
        lines.append(f"fragmentation adds to it: {format_bytes(message.cached)} are cached and unusable")
    if message.total is not None and message.allocated is not None and message.allocated > message.total:
        lines.append(
            "more is allocated than the card has: the driver spills to host memory (Windows), which is slow"
        )
    return lines


def _without_figures(kind: Kind, message: OomMessage, retries: int | None) -> Diagnosis:
    lines = []
    if message.requested is not None:
        lines.append(f"requested {format_bytes(message.requested)}")
    if kind == "library":
        lines.append(f"{message.library} asked the driver directly; the message carries no figures")
    elif message.source == "cuda":
        lines.append("the CUDA runtime reported it, not torch's allocator; the message carries no figures")
    return Diagnosis(kind, message, tuple(lines), None, retries)
