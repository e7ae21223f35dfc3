"""What a script prints, compared as far as it is about results: numbers by what is printed of them, memory and time not at all."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

# A number is a word of its own: `fc1` and `v2.0.1` have none.
_NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w]|\.\d)|(?<![\w.])[-+]?\b(?:nan|inf)\b"
)
# `tensor(2.3, device='cuda:0', grad_fn=<AddBackward0>)` and 2.3 say the same.
_TRAPPINGS = re.compile(r",\s*(?:device='[^']*'|grad_fn=<[^>]*>|requires_grad=True|dtype=torch\.\w+)")
_SCALAR = re.compile(r"\btensor\(\s*([-+]?[\w.+-]+)\s*\)")
_ADDRESS = re.compile(r"\b0x[0-9a-f]+\b")
# What a run measures of itself is not its result: sizes, durations, rates, clock times.
_MEASURED = re.compile(
    r"[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?\s?(?:[KMGTkmgt]i?B|[Bb]ytes|B|[mnµu]?s|sec(?:onds?)?|min(?:utes?)?|h(?:ours?)?|"
    r"(?:it|step|batch|batche|sample|token|tok|image|img|iter)s?/s(?:ec)?|s/(?:it|step|batch|iter)|ms/\w+|[MGT]?FLOPS?)\b"
    r"|\b\d\d?:\d\d(?::\d\d)?(?:\.\d+)?\b"
)
_ABOUT_COST = re.compile(
    r"(?i)\b((?:mem(?:ory)?|allocated|reserved|cached|peak|vram|rss|elapsed|took|time|duration|dt|speed|throughput|mfu|seconds|eta)"
    r"\b[^\d\n]{0,20}?)[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?(?:\s*\(\s*\d[\d.,]*\s*\))?"  # the average beside it, too
)
FACTOR = 10.0  # of the noise between two unchanged runs
FINE = 3e-4  # the last place printed, as a part of the number: what is coarser hardly ever lies on the edge of two
ROUNDING = 1e-5  # what adding up in another precision may change


@dataclass(frozen=True, slots=True)
class Line:
    """A printed line without its numbers, and those."""

    words: str
    numbers: tuple[str, ...]
    raw: str


def lines_of(text: str) -> list[Line]:
    """The lines of an output, progress bars' carriage returns counted as ends."""
    found = []
    for raw in re.split(r"\r\n|\r|\n", text):
        line = _SCALAR.sub(r"\1", _TRAPPINGS.sub("", _ADDRESS.sub("~", raw)))
        line = _ABOUT_COST.sub(r"\1~", _MEASURED.sub("~", line))
        if line.strip():
            numbers = tuple(_NUMBER.findall(line))
            found.append(Line(" ".join(_NUMBER.sub("#", line).split()), numbers, raw.strip()))
    return found


def same_number(one: str, other: str, noise: float = 0.0) -> bool:
    """Whether two printed numbers are the same but for rounding (of what is printed finely the last place may differ) and a
    `noise`, as a part of the number."""
    if one == other:
        return True
    try:
        a, b = float(one), float(other)
    except ValueError:
        return False
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    if _is_whole(one) and _is_whole(other) and not noise:
        return a == b
    place, size = max(_last_place(one), _last_place(other)), max(abs(a), abs(b))
    rounding = 1.01 * place if place <= FINE * size else 0.0
    return abs(a - b) <= max(rounding, ROUNDING * size, noise * size)


def _is_whole(number: str) -> bool:
    return not any(sign in number for sign in ".eEni")


def _last_place(number: str) -> float:
    """What the last digit that is shown stands for; 0 for a whole number."""
    mantissa, _, exponent = number.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    power = int(exponent or 0)
    return 10.0 ** (power - decimals) if decimals or power else 0.0


def difference(first: str, again: str, other: str) -> str:
    """Where `other` is not what both runs of the unchanged script print, in words; empty where it is nowhere.

    A line that differs between the two, in words, counts for nothing. A number that does counts in no line of the same words: it
    is measured anew in each.
    """
    a1, a2, b = lines_of(first), lines_of(again), lines_of(other)
    steady = len(a1) == len(a2)
    loose = _loose(a1, a2)
    for one, same, changed in zip_longest(a1, a2, b):
        if one is None or same is None or changed is None:
            if steady and (one is None) != (changed is None):
                shown = one if changed is None else changed
                told = "no longer prints" if changed is None else "also prints"
                return f"{told} `{_short(shown.raw if shown else '')}`"
            break
        if one.words != same.words:
            continue
        if one.words != changed.words or not _same_numbers(one, changed, loose):
            return f"prints `{_short(changed.raw)}` instead of `{_short(one.raw)}`"
    return ""


def _loose(a1: Sequence[Line], a2: Sequence[Line]) -> dict[tuple[str, int], float]:
    """The places of numbers that differ between two runs, by the words of their line: by how much, as a part of the number. One
    pair may be near by chance, so the most of all of them holds for each."""
    found: set[tuple[str, int]] = set()
    most = 0.0
    for one, same in zip(a1, a2, strict=False):
        if one.words == same.words:
            for place, (a, b) in enumerate(zip(one.numbers, same.numbers, strict=False)):
                if a != b:
                    found.add((one.words, place))
                    most = max(most, _apart(a, b))
    return dict.fromkeys(found, most)


def _apart(one: str, other: str) -> float:
    try:
        a, b = float(one), float(other)
    except ValueError:
        return math.inf
    apart = abs(a - b) / max(abs(a), abs(b), 1e-300)
    return math.inf if math.isnan(apart) else apart


def unsteady(first: str, again: str) -> int:
    """How many lines two runs of the unchanged script print differently."""
    pairs = zip_longest(lines_of(first), lines_of(again))
    return sum(a is None or b is None or (a.words, a.numbers) != (b.words, b.numbers) for a, b in pairs)


def _same_numbers(one: Line, changed: Line, loose: dict[tuple[str, int], float]) -> bool:
    pairs = zip(one.numbers, changed.numbers, strict=False)
    return all(same_number(a, b, FACTOR * loose.get((one.words, n), 0.0)) for n, (a, b) in enumerate(pairs))


def _short(text: str, most: int = 80) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def unordered(first: str, again: str, other: str) -> str:
    """The same for ranks that print at once: which lines there are counts, and not their order."""

    def steady(text: str) -> list[Line]:
        return sorted(lines_of(text), key=lambda line: (line.words, line.numbers))

    def joined(lines: Sequence[Line]) -> str:
        return "\n".join(line.raw for line in lines)

    return difference(*(joined(steady(text)) for text in (first, again, other)))
