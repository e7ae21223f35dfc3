"""What the formats have in common: rows, words and the order in which fixes are told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gpulint.config import shown_path
from gpulint.reports import plural
from gpulint.reports.verify.text import growth_text, wasted_title
from gpulint.trial.gains import amount
from gpulint.trial.plan import Gain, Judged, Status, Trial

MOST_LEFT = 8
REPORT_URL = "https://github.com/gpulint/gpulint/issues"
ORDER: tuple[Status, ...] = (
    "pays",
    "changes the result",
    "breaks",
    "cannot be compared",
    "changes nothing",
    "not reached",
    "not tried",
)


def place(judged: Judged) -> str:
    """`train.py:31`."""
    first = judged.fix.shown
    cell = f":cell {first.cell}" if first.cell is not None else ""
    return f"{shown_path(first.filename)}{cell}:{first.line}"


def in_order(trial: Trial) -> list[Judged]:
    """The fixes as they are told: what pays first, then what is wrong."""
    return sorted(trial.judged, key=lambda one: (ORDER.index(one.status), one.fix.number))


def change(gain: Gain) -> str:
    """`-81 %`; `none left` where nothing is."""
    if not gain.counts:
        return "within noise" if gain.before != gain.after else "same"
    if gain.before and not gain.after:
        return "none left"
    if not gain.before:
        return "new"
    return f"{-100 * gain.share:+.1f} %" if 0.99 < gain.share < 1 else f"{-100 * gain.share:+.0f} %"


def rows(gains: Iterable[Gain]) -> list[tuple[str, str, str, str]]:
    """Figure, before, after, change: those that moved, the peak first, and the steps' time whether it did or not, last."""
    shown = [gain for gain in gains if gain.counts or gain.unit == "seconds"]
    return [
        (gain.name, amount(gain.before, gain.unit), amount(gain.after, gain.unit), change(gain))
        for gain in sorted(shown, key=lambda gain: (gain.unit == "seconds", gain.name != "peak"))
    ]


def told(judged: Judged, most: int = 3) -> str:
    """What a fix saves, or what is wrong with it, in one line."""
    if judged.status != "pays":
        costs = "; ".join(_moved(gain) for gain in judged.gains if gain.is_worse)
        return judged.text or (f"costs: {costs}" if costs else "no figure moves beyond noise")
    saved = [gain for gain in judged.gains if gain.is_better]
    shown = "; ".join(_moved(gain) for gain in saved[:most])
    worse = "; ".join(_moved(gain) for gain in judged.gains if gain.is_worse)
    group = "" if judged.alone else "together with others: "
    return f"{group}{shown}{f'; costs {worse}' if worse else ''}"


def _moved(gain: Gain) -> str:
    return f"{gain.name} {amount(gain.before, gain.unit)} → {amount(gain.after, gain.unit)}"


def where(trial: Trial) -> str:
    """`train.py: 3 runs, on NVIDIA H200, torch 2.11.0`."""
    runs = plural(len(trial.attempts), "run")
    seconds = sum(attempt.seconds for attempt in trial.attempts)
    parts = [f"{runs} in {seconds:.0f} s"]
    if trial.before is not None and trial.before.ranks:
        environment = trial.before.ranks[0].environment
        if environment.torch is not None:
            name = environment.device_name or environment.device
            parts.append(f"on {name}" if environment.device == "cuda" else f"on the CPU ({name})")
            parts.append(f"torch {environment.torch}")
        if len(trial.before.ranks) > 1:
            workers = any(rank.process for rank in trial.before.ranks)
            parts.append(f"{len(trial.before.ranks)} {'processes' if workers else 'ranks'}")
    return ", ".join(parts)


def on_gpu(trial: Trial) -> bool:
    """Whether a GPU was measured."""
    return any(rank.environment.device == "cuda" for rank in (trial.before.ranks if trial.before else ()))


def remarks(trial: Trial) -> Iterator[str]:
    """What the reader of the figures has to know."""
    if trial.noise:
        yield f"{trial.noise[0].upper()}{trial.noise[1:]}."
    if trial.before is not None and trial.gains and not on_gpu(trial):
        yield "Without a GPU the figures are of what would be on one; reserved memory and waiting for the GPU are not measured."
    yield from trial.doubts
    yield from left(trial)
    defects = [one for one in trial.judged if one.is_our_defect]
    if defects:
        codes = ", ".join(dict.fromkeys(one.fix.codes for one in defects))
        yield (
            f"A fix of {codes} was called safe and is not: that is a defect of gpulint. "
            f"Please report it with the lines of the diff: {REPORT_URL}"
        )


def left(trial: Trial) -> Iterator[str]:
    """What running finds that no fix speaks of, as `verify` tells it."""
    found = trial.left
    if found is None:
        return
    for growth in found.unpredicted[:MOST_LEFT]:
        grown = growth_text(growth, found.where).partition(": ")[2]
        yield f"Left, and in no fix{_at(growth.file, growth.line)}: {grown}, {growth.text}."
    for wasted in found.wasted[:MOST_LEFT]:
        yield f"Left, and in no fix{_at(wasted.file, wasted.line)}: {wasted_title(wasted)}."
    more = len(found.unpredicted[MOST_LEFT:]) + len(found.wasted[MOST_LEFT:])
    if more:
        yield f"{more} more of that are left; without --fix they are all told."


def _at(file: str, line: int) -> str:
    return f", {shown_path(file)}:{line}" if file and line else ""


def closing(trial: Trial, dry: bool) -> str:
    """The last line."""
    if trial.failure:
        return f"Nothing could be tried: {trial.failure}."
    if not trial.judged:
        drifts = trial.left is not None and trial.left.drifting
        return f"No finding of this program has a fix{'; what drifts is left' if drifts else ': there is nothing to try'}."
    number, every = len(trial.paying), len(trial.judged)
    if not number:
        return (
            f"{'The fix does not pay' if every == 1 else f'None of {every} fixes pays'}: nothing was written."
        )
    verb = "pays and changes no result" if number == 1 else "pay and change no result"
    said = f"{_most(trial)}{'the fix' if every == 1 else f'{number} of {every} fixes'} {verb}"
    said = said[0].upper() + said[1:]
    if trial.written:
        return f"{said}; written to {', '.join(shown_path(path) for path in trial.written)}."
    return f"{said}; {'nothing was written (--dry-run)' if dry else 'nothing was written'}."


def _most(trial: Trial) -> str:
    """What the fixes that pay save together, the peak where it is less: `peak 18.09 MiB → 2.77 MiB: `."""
    better = sorted((gain for gain in trial.gains if gain.is_better), key=lambda gain: gain.name != "peak")
    return f"{_moved(better[0])}: " if better else ""


def widths(table: Sequence[Sequence[str]]) -> list[int]:
    """The width of each column."""
    return [max(map(len, column)) for column in zip(*table, strict=True)]
