"""What `oom_guard` has logged, read back: its diagnosis has the figures that torch's own message had."""

from __future__ import annotations

import re
from typing import Final

from gpulint.memory.oom.diagnosis import kind_of
from gpulint.memory.oom.messages import OomMessage
from gpulint.units import parse_bytes

_SIZE: Final = r"\d+(?:\.\d+)? [KMGTPE]?i?B"
# The first line of a report, or the only one where the guard has explained the like before; and what is a report's last where
# the guard could clean up.
BEGIN: Final = re.compile(
    r"out of memory (?P<again>again )?in (?P<where>.+?:\d+ in \S+?)(?:\(\))?(?(again):.*|\s*)$", re.MULTILINE
)
END: Final = re.compile(r"^\s*recovered: allocated")
_FREE = re.compile(
    rf"^\s*free (?:on the card|(?P<metal>below Metal's limit)) (?P<free>{_SIZE})(?: of (?P<total>{_SIZE}))?",
    re.MULTILINE,
)
_ALLOWED = re.compile(rf"this process may use (?P<allowed>{_SIZE}) and has reserved (?P<reserved>{_SIZE})")
_FIGURES: Final = {
    name: re.compile(rf"^\s*{words.replace('SIZE', f'(?P<size>{_SIZE})')}", re.MULTILINE)
    for name, words in {
        "requested": "requested SIZE",
        "cached": "cached SIZE: reserved by torch",
        "outside": "SIZE of this process lie outside torch's allocator",
        "private": "SIZE are bound to private pools",
        "others": "other processes hold SIZE",
        "recovered": "recovered: allocated SIZE ->",
    }.items()
}


def parse_report(text: str) -> OomMessage | None:
    """The message that a guard's report in `text` is about; None where there is none, or it is one line."""
    begin = BEGIN.search(text)
    if begin is None or begin["again"]:
        return None
    free, allowed = _FREE.search(text), _ALLOWED.search(text)
    told = {name: match for name, pattern in _FIGURES.items() if (match := pattern.search(text))}
    sizes = {name: parse_bytes(match["size"]) for name, match in told.items()}
    if "requested" not in sizes or free is None or ("cached" not in sizes and free["metal"] is None):
        kind = kind_of(text[begin.end() :])
        return None if kind is None else OomMessage("host" if kind == "host" else "cuda")
    total = parse_bytes(free["total"]) if free["total"] else None
    held, outside = sizes.get("cached", 0), sizes.get("outside")
    if allowed is not None:
        allocated = max(0, parse_bytes(allowed["reserved"]) - held)
    elif "recovered" in sizes:
        allocated = sizes["recovered"]
    else:  # at most: what is not told apart, a small context say, is in it
        allocated = max(
            0, (total or 0) - parse_bytes(free["free"]) - held - (outside or 0) - sizes.get("others", 0)
        )
    return OomMessage(
        "allocator",
        requested=sizes["requested"],
        total=total,
        free=parse_bytes(free["free"]),
        allocated=allocated,
        cached=held,
        process=allocated + held + outside if outside is not None else None,
        allowed=parse_bytes(allowed["allowed"]) if allowed is not None else None,
        private=sizes.get("private"),
        backend="MPS" if free["metal"] else "CUDA",
    )


def raised_at(text: str) -> str | None:
    """The line of the user's code that a guard's report names."""
    found = BEGIN.search(text)
    return found["where"] if found is not None else None


def is_again(text: str) -> bool:
    """Whether it is the one line of an error that a report before it has explained."""
    found = BEGIN.search(text)
    return found is not None and found["again"] is not None
