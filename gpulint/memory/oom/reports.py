"""What `oom_guard` has logged, read back: its diagnosis has the figures that torch's own message had."""

from __future__ import annotations

import re
from typing import Final

from gpulint.memory.oom.messages import OomMessage
from gpulint.units import parse_bytes

_SIZE: Final = r"\d+(?:\.\d+)? [KMGTPE]?i?B"
# The first line of a report, and what is its last where the guard could clean up.
BEGIN: Final = re.compile(r"out of memory in (?P<where>.+?:\d+ in \S+?)(?:\(\))?\s*$", re.MULTILINE)
END: Final = "recovered: allocated"
_REQUESTED = re.compile(rf"^\s*requested (?P<size>{_SIZE})", re.MULTILINE)
_FREE = re.compile(rf"^\s*free on the card (?P<free>{_SIZE})(?: of (?P<total>{_SIZE}))?", re.MULTILINE)
_ALLOWED = re.compile(rf"this process may use (?P<allowed>{_SIZE}) and has reserved (?P<reserved>{_SIZE})")
_CACHED = re.compile(rf"^\s*cached (?P<size>{_SIZE}): reserved by torch", re.MULTILINE)
_RECOVERED = re.compile(rf"^\s*recovered: allocated (?P<size>{_SIZE}) ->", re.MULTILINE)


def parse_report(text: str) -> OomMessage | None:
    """The message that a guard's report in `text` is about; None where there is none, or it has no figures."""
    if BEGIN.search(text) is None:
        return None
    requested, free, cached = (pattern.search(text) for pattern in (_REQUESTED, _FREE, _CACHED))
    if requested is None or free is None or cached is None:
        return None
    allowed, recovered = _ALLOWED.search(text), _RECOVERED.search(text)
    total = parse_bytes(free["total"]) if free["total"] else None
    held = parse_bytes(cached["size"])
    if recovered is not None:
        allocated = parse_bytes(recovered["size"])
    elif allowed is not None:
        allocated = max(0, parse_bytes(allowed["reserved"]) - held)
    else:  # at most: other processes may have a part of it
        allocated = max(0, (total or 0) - parse_bytes(free["free"]) - held)
    return OomMessage(
        "allocator",
        requested=parse_bytes(requested["size"]),
        total=total,
        free=parse_bytes(free["free"]),
        allocated=allocated,
        cached=held,
        allowed=parse_bytes(allowed["allowed"]) if allowed is not None else None,
    )


def raised_at(text: str) -> str | None:
    """The line of the user's code that a guard's report names."""
    found = BEGIN.search(text)
    return found["where"] if found is not None else None
