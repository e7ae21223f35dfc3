"""Capacity or fragmentation: the arithmetic of an out-of-memory message.

When the caching allocator gives up it has already returned every block that it could return. What is still
cached then lies beside tensors in the same segments and cannot serve the request. So the question is whether
free memory and cache together would have been enough.

What `oom_guard` has logged is read back here, too: its report ends with the figures that torch's own message had.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from gpulint.memory.oom import advice
from gpulint.memory.oom.advice import Advice, Cause, cause_of
from gpulint.memory.oom.messages import OomMessage, Other
from gpulint.units import format_bytes

Kind = Literal["shape", "capacity", "fragmentation", "other-processes", "limit", "library", "host", "unclear"]

MIB: Final = 1024**2
TO_TRY: Final = "what to try, in this order"

_FAR_ABOVE: Final = 2  # times the card: no batch that was meant is so large
_NO_CARD: Final = 1 << 50
_FULL: Final = 0.9  # of the card in tensors
_SIZE_OR_GROWTH: Final = "no fragmentation, but too much at once, or something that grows"
_CACHED: Final = "cached {}: reserved by torch, in no tensor, in pieces too small or shared"
_MANY: Final = 0.1  # of the card, for what others hold to be the reason
# Of what is reserved: less in no tensor is what a program without any fragmentation has too.
_MUCH: Final = 0.04
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


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What an out-of-memory error was about. `arithmetic` shows the sum line by line; `missing` is how many
    bytes were short with the whole cache given back (negative: so many would have been left over)."""

    kind: Kind
    message: OomMessage
    arithmetic: tuple[str, ...]
    missing: int | None = None
    retries: int | None = None
    cause: Cause | None = None

    @property
    def headline(self) -> str:
        return _HEADLINES[self.kind]

    @property
    def retried(self) -> str:
        """In words, how often the allocator had retried; "" where it had not, or the count is not known."""
        times = "once" if self.retries == 1 else f"{self.retries} times"
        return f"the allocator had emptied its cache and retried {times} before" if self.retries else ""

    @property
    def advice(self) -> tuple[Advice, ...]:
        """What to try, in this order: what the traceback says comes first."""
        known = advice.FOR[self.kind]
        if self.kind == "capacity" and self.message.backend == "MPS":
            known = (*known, advice.METAL)
        return known if self.cause is None else (Advice(self.cause.helps), *known)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "headline": self.headline,
            "message": asdict(self.message),
            "arithmetic": list(self.arithmetic),
            "missing": self.missing,
            "retries": self.retries,
            "cause": self.cause.what if self.cause is not None else None,
            "advice": [{"text": each.text, "measured": each.measured} for each in self.advice],
        }

    def lines(self) -> list[str]:
        """The whole diagnosis as text lines."""
        cause = f"raised {self.cause.what}" if self.cause is not None else ""
        said = filter(None, (*self.arithmetic, cause, self.retried))
        advised = (f"{number}. {each}" for number, each in enumerate(self.advice, 1))
        return [self.headline, *(f"  {one}" for one in said), f"{TO_TRY}:", *(f"  {one}" for one in advised)]

    def __str__(self) -> str:
        return "\n".join(self.lines())


def segment_size(size: int) -> int:
    """What the allocator asks the driver for when it needs a new segment for `size` bytes."""
    if size <= MIB:
        return 2 * MIB
    if size < 10 * MIB:
        return 20 * MIB
    return -(-size // (2 * MIB)) * 2 * MIB


def diagnose(
    message: OomMessage, retries: int | None = None, frames: Sequence[tuple[str, str]] = ()
) -> Diagnosis:
    """Tell what a message is about. Sizes in messages are rounded to 0.01 of their unit; a difference smaller
    than that decides nothing. `frames` are the files and functions of its traceback, libraries' too: some say the cause."""
    cause = None if message.source == "host" else cause_of(frames)
    if message.source in ("host", "library"):
        kind: Kind = "host" if message.source == "host" else "library"
        return Diagnosis(kind, message, tuple(_known(message)), None, retries, cause)
    requested, free, allocated, cached = message.requested, message.free, message.allocated, message.cached
    if requested is None or free is None or allocated is None or cached is None:
        kind, missing = _judged_by_half(message)
        return Diagnosis(kind, message, tuple(_known(message)), missing, retries, cause)
    asked = segment_size(requested) if message.backend != "MPS" else requested
    usable, room = _usable(message, free, allocated + cached)
    missing = asked - usable - cached
    # Metal does not tell
    kept = [] if message.backend == "MPS" else [_CACHED.format(format_bytes(cached))]
    needed = f", for which the allocator needs {format_bytes(asked)} from the driver"
    more = needed if format_bytes(asked) != format_bytes(requested) else ""
    relation = f"{'<' if missing > 0 else '>='} {format_bytes(asked)}"
    verdict = f"{format_bytes(missing)} missing" if missing > 0 else "it would have fitted in one piece"
    held = foreign(message)
    among = "" if message.process is not None or message.others else ", with this process's CUDA context"
    lines = [
        *([f"other processes hold {format_bytes(held)}{_of(message.total)}{among}"] if held else []),
        f"requested {format_bytes(requested)}{more}",
        room,
        *kept,
        f"{format_bytes(usable)} + {format_bytes(cached)} = {format_bytes(usable + cached)} {relation}: {verdict}",
    ]
    kind = _kind(message, asked, usable, missing)
    return Diagnosis(kind, message, (*lines, *_remarks(message, kind, missing)), missing, retries, cause)


def _judged_by_half(message: OomMessage) -> tuple[Kind, int | None]:
    """What can be said where the message lacks figures: Intel's does not tell what is free, `cudaMallocAsync` not what is cached."""
    asked, total, allocated = message.requested, message.total, message.allocated
    if asked is not None and asked > _FAR_ABOVE * (total or _NO_CARD):
        return "shape", None
    if asked is not None and total is not None and asked + (allocated or 0) > total:
        return "capacity", asked + (allocated or 0) - total
    return ("capacity" if allocated and total and allocated > _FULL * total else "unclear"), None


def _known(message: OomMessage) -> list[str]:
    """The figures of a message that has not all of them, and why."""
    if message.source == "library":
        return [f"{message.library} asked the driver directly; the message carries no figures"]
    if message.source == "cuda":
        return ["the CUDA runtime reported it, not torch's allocator; the message carries no figures"]
    sizes = (message.requested, message.total, message.free, message.allocated)
    named = zip(("requested", "the card has", "free on it", "in tensors"), sizes, strict=True)
    lines = [f"{name} {format_bytes(size)}" for name, size in named if size is not None]
    if message.total and message.allocated and message.allocated > _FULL * message.total:
        share = _percent(message.allocated / message.total)
        lines.append(f"{share} of the card is in tensors: {_SIZE_OR_GROWTH}")
    return lines + _warnings(message)


def _usable(message: OomMessage, free: int, reserved: int) -> tuple[int, str]:
    where = "free below Metal's limit" if message.backend == "MPS" else "free on the card"
    said = f"{where} {format_bytes(free)}{_of(message.total)}"
    if message.allowed is None:
        return free, said
    usable = min(free, max(0, message.allowed - reserved))
    limit = f"{format_bytes(message.allowed)} and has reserved {format_bytes(reserved)}"
    return usable, f"{said}; this process may use {limit}: {format_bytes(usable)}"


def _of(total: int | None) -> str:
    return "" if total is None else f" of {format_bytes(total)}"


def _kind(message: OomMessage, asked: int, usable: int, missing: int) -> Kind:
    assert message.free is not None
    assert message.cached is not None
    if message.total is not None and asked > _FAR_ABOVE * message.total:
        return "shape"
    limited = message.allowed is not None and message.free + message.cached >= asked
    others = foreign(message)
    if missing > 0 and limited:
        return "limit"
    if usable >= asked:
        # More free than asked for, and refused all the same: then the cache is not the reason.
        return "unclear"
    own = own_memory(message) or message.reserved or 0
    if others >= max(missing, _MANY * (message.total or 0), 1) and (missing > 0 or others > own):
        return "other-processes"
    if missing <= 0 and message.cached >= _MUCH * (message.reserved or 0):
        return "fragmentation"
    return "limit" if limited else "capacity"


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
    """Bytes of other processes on the card, 0 where the message does not tell.

    Up to torch 2.0, on Windows and in other containers no process is listed: what is neither free nor reserved here is theirs,
    but for a CUDA context.
    """
    own = own_memory(message)
    listed = sum(other.bytes for other in message.others)
    if message.process is None and own is not None:
        listed -= own
    own = message.reserved if own is None else own
    if own is None or message.total is None or message.free is None:
        return listed
    unlisted = message.total - message.free - own - listed
    return listed + (unlisted if unlisted > 1024 * MIB else 0)


def _remarks(message: OomMessage, kind: Kind, missing: int) -> list[str]:
    lines = []
    if message.total is not None and message.requested is not None and message.requested > message.total:
        times = message.requested / message.total
        much = f"{times:,.0f} times the card" if times >= 2 else "larger than the card"
        lines.append(f"the request alone, one piece, is {much}: look at the shapes first")
    own = own_memory(message)
    if own is not None and message.reserved is not None and own - message.reserved > 64 * MIB:
        whose = "Metal, other frameworks" if message.backend == "MPS" else "CUDA context, NCCL, cuDNN"
        outside = format_bytes(own - message.reserved)
        lines.append(f"{outside} of this process lie outside torch's allocator ({whose})")
    if message.private:
        lines.append(f"{format_bytes(message.private)} are bound to private pools (CUDA graphs)")
    if message.backend != "MPS" and message.allocated and message.reserved:
        lines += _share(kind, message.allocated, message.reserved, missing)
    return lines + _warnings(message)


def _share(kind: Kind, allocated: int, reserved: int, missing: int) -> list[str]:
    """How much of what is reserved is in tensors, where that says what fragmentation has to do with it."""
    cached, share = reserved - allocated, _percent(allocated / reserved)
    if kind == "capacity" and cached < _MUCH * reserved:
        return [f"{share} of what this process has reserved is in tensors: {_SIZE_OR_GROWTH}"]
    if kind == "capacity" and cached > missing:
        return [f"fragmentation adds to it: {format_bytes(cached)} are cached and unusable"]
    if kind == "fragmentation" and cached < 3 * _MUCH * reserved:
        return [
            f"{share} of what is reserved is in tensors: little would be left without fragmentation too; `gpulint verify` tells"
            " what grows"
        ]
    return []


def _percent(share: float) -> str:
    return f"{min(99, round(100 * share)) if share < 1 else 100} %"


def _warnings(message: OomMessage) -> list[str]:
    if message.total is None or message.allocated is None or message.allocated <= message.total:
        return []
    return ["more is allocated than the card has: the driver spills to host memory (Windows), which is slow"]


# -- read back ---------------------------------------------------------------------------------------------------

# The first line of a report, or the only one where the guard has explained the like before; and what its last begins with.
BEGIN: Final = re.compile(
    r"out of memory (?P<again>again )?in (?P<where>.+?:\d+ in \S+?)(?:\(\))?(?(again):.*|\s*)$", re.MULTILINE
)
END: Final = re.compile(r"^\s*figures: (?=\{)", re.MULTILINE)


def figures_of(message: OomMessage) -> str:
    """The last line of a report: what the message says, for `parse_report`."""
    known = {name: value for name, value in asdict(message).items() if value not in (None, (), "")}
    return f"figures: {json.dumps(known)}"


def parse_report(text: str) -> OomMessage | None:
    """The message that a guard's report in `text` is about; None where there is none, or it is one line."""
    end = END.search(text)
    if end is None or BEGIN.search(text) is None:
        return None
    try:
        known, _ = json.JSONDecoder().raw_decode(text, end.end())
        others = tuple(Other(**one) for one in known.pop("others", ()))
        return OomMessage(**known, others=others)
    except (ValueError, TypeError):
        return None


def raised_at(text: str) -> str | None:
    """The line of the user's code that a guard's report names."""
    return found["where"] if (found := BEGIN.search(text)) else None


def is_again(text: str) -> bool:
    """Whether it is the one line of an error that a report before it has explained."""
    found = BEGIN.search(text)
    return found is not None and found["again"] is not None
