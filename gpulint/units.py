"""Numbers and bytes for people, in the binary units that torch's own messages use; and the text of its allocator's settings, read."""

from __future__ import annotations

import re

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(bytes|[KMGTPE]?i?B?)\s*", re.IGNORECASE)


def format_bytes(size: int | float, signed: bool = False) -> str:
    """`1536` is "1.50 KiB". With `signed`, positive figures carry a plus."""
    sign = "-" if size < 0 else "+" if signed and size > 0 else ""
    value = abs(float(size))
    for unit in _UNITS:
        if value < 1024 or unit == _UNITS[-1]:
            return f"{sign}{value:.0f} B" if unit == "B" else f"{sign}{value:.2f} {unit}"
        value /= 1024
    raise AssertionError("unreachable")


def plural(number: int, noun: str) -> str:
    """ "1 tensor", "3 tensors"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def parse_bytes(text: str) -> int:
    """The number of bytes that "1.5 GiB", "512MB", "20 MiB" or "0 bytes" stands for.

    All units are binary, as in torch's messages and `max_split_size_mb`. Raises ValueError otherwise.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a size; write it like 512MiB or 1.5GiB")
    unit = match[2].upper()
    power = 0 if unit in ("", "B", "BYTES") else "BKMGTPE".index(unit[0])
    return round(float(match[1]) * 1024.0**power)


def parts(text: str) -> list[str]:
    """The options of an allocator setting as written; brackets keep their commas."""
    return [part for part in re.split(r",(?![^\[]*\])", text) if part.strip()]


def options(text: str) -> list[tuple[str, str]]:
    """`[("a", "1"), ("b", "[64:8,>:4]")]` of the allocator setting `"a:1, b:[64:8,>:4]"`; a value that is not given is ""."""
    return [(key.strip(), value.strip()) for key, _, value in (part.partition(":") for part in parts(text))]
