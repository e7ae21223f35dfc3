"""Whether a run computes what the unchanged script computes: bit for bit, or within the noise of two unchanged runs. What a script prints is
compared as far as it is about results: numbers by what is printed of them, memory and time not at all."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest

from gpulint.runtime.record.besides import Recording, Weight
from gpulint.runtime.record.result import ENDED_WELL, RankResult, RunResult

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
PRINTED_ROUNDING = 1e-5  # what adding up in another precision may change


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


def relative(one: float | None, other: float | None) -> float:
    """How far two values are apart, as a part of the larger; 0 for two that are no numbers, infinite for one of them."""
    if one is None or other is None:
        return 0.0 if one is other else math.inf
    if one == other or (math.isnan(one) and math.isnan(other)):
        return 0.0
    if not (math.isfinite(one) and math.isfinite(other)):
        return math.inf
    return abs(one - other) / max(abs(one), abs(other))


def same_number(one: str, other: str, noise: float = 0.0) -> bool:
    """Whether two printed numbers are the same but for rounding (of what is printed finely the last place may differ) and a
    `noise`, as a part of the number."""
    apart = relative(float(one), float(other))
    if apart == 0 or (_is_whole(one) and _is_whole(other) and not noise):
        return apart == 0
    size = max(abs(float(one)), abs(float(other)))
    fine = 1.01 * max(_last_place(one), _last_place(other)) / size
    return apart <= max(fine if fine <= 1.01 * FINE else 0.0, PRINTED_ROUNDING, noise)


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
                    most = max(most, relative(float(a), float(b)))
    return dict.fromkeys(found, most)


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


ROUNDING = 1e-6  # relative; where two unchanged runs differ at all, rounding may differ anywhere
BLIND = 0.01  # relative noise at which values say nothing any more
AHEAD = 10  # values by which the noise of a series is known in advance
FEWEST = 3  # values that must be comparable, for a run to be

Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Baseline:
    """The two runs of the unchanged script."""

    first: RunResult
    again: RunResult

    # -- what they have to say ---------------------------------------------------------------------------------

    def noise(self) -> str:
        """In words, within what other runs are compared with these."""
        parts = []
        worst = max((apart for a, b in self._pairs() for apart in _noise(a.losses, b.losses)), default=0.0)
        if worst:
            parts.append(f"what goes backward differs by up to {worst:.1g} of its value")
        norms = max((apart for a, b in self._pairs() for apart in _noise(a.norms, b.norms)), default=0.0)
        if norms:
            parts.append(f"the weights' norms differ by up to {norms:.1g}")
        loose = sum(_unequal(a.weights, b.weights) for a, b in self._pairs())
        if loose and not norms:
            parts.append(f"{loose} weights differ")
        drawn = sorted({name for a, b in self._pairs() for name in _drawn_otherwise(a, b)})
        if drawn:
            parts.append(f"random numbers of {', '.join(drawn)} are drawn differently")
        lines = unsteady(self.first.stdout or "", self.again.stdout or "")
        if lines and len(self.first.ranks) + len(self.first.others) < 2:
            parts.append(f"{lines} printed line{'s are' if lines != 1 else ' is'} not the same")
        if not parts:
            return "two runs of the unchanged script compute the same, bit for bit"
        return f"two runs of the unchanged script differ: {'; '.join(parts)}. Compared within that"

    @property
    def is_exact(self) -> bool:
        """Whether the two compute the same, bit for bit."""
        return all(
            (a.losses, a.norms, a.weights, a.drawn) == (b.losses, b.norms, b.weights, b.drawn)
            for a, b in self._pairs()
        )

    @property
    def is_blind(self) -> bool:
        """Whether the script differs from itself so much that a change of its result could not be told."""
        return any(self._sees_nothing(a, b) for a, b in self._pairs())

    @staticmethod
    def _sees_nothing(a: Recording, b: Recording) -> bool:
        """Whether of the values of one rank hardly any can be compared. Norms tell little: a step moves them but slightly."""
        one, other = (a.losses, b.losses) if a.losses else (a.norms, b.norms)
        return sum(noise <= BLIND for noise in _noise(one, other)) < min(FEWEST, len(one))

    def _pairs(self) -> Iterator[tuple[Recording, Recording]]:
        for a, b in zip(self.first.ranks, self.again.ranks, strict=False):
            if a.recording is not None and b.recording is not None:
                yield a.recording, b.recording

    # -- another run -------------------------------------------------------------------------------------------

    def broken(self, run: RunResult) -> str:
        """Why a run does not end as the unchanged script does, in words; empty where it does."""
        end, expected = run.end, self.first.end
        if end.reason in ENDED_WELL and end.code == expected.code:
            return ""
        if end.reason == "timeout":
            return "did not come as far as the unchanged script in three times its time"
        return end.message

    def difference(self, run: RunResult) -> str:
        """What a run computes otherwise, the first of it, in words; empty where nothing is."""
        if len(run.ranks) != len(self.first.ranks):
            return f"{len(run.ranks)} ranks report instead of {len(self.first.ranks)}"
        for rank, same, other in zip(self.first.ranks, self.again.ranks, run.ranks, strict=False):
            told = _rank_difference(rank, same, other)
            if told:
                return f"rank {rank.rank}: {told}" if len(run.ranks) > 1 else told
        compare = unordered if len(run.ranks) + len(run.others) > 1 else difference
        return compare(self.first.stdout or "", self.again.stdout or "", run.stdout or "")


def _rank_difference(rank: RankResult, same: RankResult, other: RankResult) -> str:
    a1, a2, b = rank.recording, same.recording, other.recording
    if a1 is None or b is None:
        return "" if a1 is b else "what it computes was not written down"
    a2 = a2 or a1
    return (
        _series_difference("what goes backward", a1.losses, a2.losses, b.losses)
        or _series_difference(
            "the norm of the weights after an optimizer's step", a1.norms, a2.norms, b.norms
        )
        or _place_difference(a1, a2, b)
        or _weights_difference(a1, a2, b)
        or _drawing_difference(a1, a2, b)
    )


# -- values in order -------------------------------------------------------------------------------------------


def _noise(first: Values, again: Values) -> list[float]:
    """By how much two series differ up to each place, and a little beyond: of one pair of values, which may be near by chance,
    it could not be told."""
    apart = [relative(one, other) for one, other in zip(first, again, strict=False)]
    most = list(accumulate(apart, max))
    return [most[min(place + AHEAD, len(most) - 1)] for place in range(len(most))]


def _series_difference(what: str, a1: Values, a2: Values, b: Values) -> str:
    noise = _noise(a1, a2)
    noisy = bool(noise and noise[-1]) or len(a1) != len(a2)
    for number, (one, other) in enumerate(zip(a1, b, strict=False)):
        within = noise[number] if number < len(noise) else math.inf
        if within > BLIND:
            break
        allowed = FACTOR * max(within, ROUNDING) if noisy else 0.0
        apart = min(relative(one, other), relative(a2[number], other))
        if apart > allowed:
            return f"{what} is {_shown(other)} instead of {_shown(one)}, {_ordinal(number + 1)} of {len(a1)} values"
    if len(a1) == len(a2) and len(a1) != len(b):
        times = "time" if len(b) == 1 else "times"
        return f"{what}: seen {len(b)} {times} instead of {len(a1)}"
    return ""


def _shown(value: float | None) -> str:
    return "unreadable" if value is None else f"{value:.9g}"


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"the {number}{ending}"


def _place_difference(a1: Recording, a2: Recording, b: Recording) -> str:
    if a1.position == a2.position and a1.position != b.position:
        return (
            f"it comes to {b.position.updates} updates and {b.position.events} forwards and batches after the last, instead of "
            f"{a1.position.updates} and {a1.position.events}"
        )
    return ""


# -- weights and random numbers ----------------------------------------------------------------------------------


def _unequal(first: Sequence[Weight], again: Sequence[Weight]) -> int:
    other = {weight.name: weight for weight in again}
    return sum(weight.name in other and other[weight.name] != weight for weight in first)


def _weights_difference(a1: Recording, a2: Recording, b: Recording) -> str:
    """What is the same in both unchanged runs must be the same; the rest as far as any weight differs between those."""
    again, changed = ({weight.name: weight for weight in one.weights} for one in (a2, b))
    pairs = [(weight, again[weight.name]) for weight in a1.weights if weight.name in again]
    noise = max((_weight_apart(one, same) for one, same in pairs), default=0.0)
    for weight, same in pairs:
        other = changed.get(weight.name)
        if other is None or weight == other:
            continue  # what is no longer there at the end cannot be compared
        if weight == same:
            return f"`{weight.name}` has other values ({_norms(weight, other)})"
        if noise <= BLIND and _weight_apart(weight, other) > FACTOR * max(noise, ROUNDING):
            return f"`{weight.name}` has other values, beyond the noise ({_norms(weight, other)})"
    return ""


def _weight_apart(one: Weight, other: Weight) -> float:
    """How far two weights are apart by their norms and sums, as a part of what they could be."""
    largest = max(one.norm, other.norm) * math.sqrt(math.prod(one.shape) or 1) or 1.0
    return max(relative(one.norm, other.norm), abs(one.sum - other.sum) / largest)


def _norms(weight: Weight, other: Weight) -> str:
    return f"norm {other.norm:.9g} instead of {weight.norm:.9g}"


def _drawn_otherwise(one: Recording, other: Recording) -> list[str]:
    states = {drawn.name: drawn.state for drawn in other.drawn}
    return [d.name for d in one.drawn if d.name in states and states[d.name] != d.state]


def _drawing_difference(a1: Recording, a2: Recording, b: Recording) -> str:
    noisy = _drawn_otherwise(a1, a2)
    changed = [name for name in _drawn_otherwise(a1, b) if name not in noisy]
    return f"random numbers of {', '.join(changed)} are drawn differently" if changed else ""
