"""A trial as a document: the verdict on each fix with its diff, the figures before and after, both runs' memory on one plot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from gpulint.config import shown_path
from gpulint.reports import plural
from gpulint.reports.document import Card, Chart, Diff, Document, Say, Table, curve, section
from gpulint.reports.verify import growth_text, wasted_title
from gpulint.runtime.record.result import RunResult, Sample
from gpulint.source.edits import apply_edits, unified_diff
from gpulint.trial.plan import Gain, Judged, Status, Trial, amount
from gpulint.units import format_bytes
from gpulint.version import __version__

SCHEMA: Final = 1
_MOST_LEFT = 8
_MOST_SAVED = 10
_REPORT_URL = "https://github.com/gpulint/gpulint/issues"
_STYLES: dict[Status, str] = {  # in the order in which fixes are told
    "pays": "good",
    "changes the result": "bad",
    "breaks": "bad",
    "cannot be compared": "warn",
    "changes nothing": "info",
    "not reached": "mute",
    "not tried": "mute",
}
_SERIES: Final = (("peak", "peak within the step"), ("allocated", "allocated at the step's end"))


def document(trial: Trial, dry: bool) -> Document:
    """The whole report; `dry` says that the fixes are not to be applied."""
    diffs = tuple(Diff(shown_path(path), trial.originals[path], text) for path, text in trial.texts.items())
    runs = [
        (str(number), one.label, one.outcome, f"{one.seconds:.1f} s")
        for number, one in enumerate(trial.attempts, 1)
    ]
    return Document(
        f"gpulint tried the fixes of {trial.target}",
        trial.target,
        where(trial) if trial.attempts else "",
        "bad" if trial.failure else "good" if trial.paying else "info",
        closing(trial, dry),
        (
            section("Before and after", _before_and_after(trial)),
            section("Memory by step, before and after", _memory(trial.before, trial.after)),
            section("Every fix, tried", (_card(one, trial) for one in in_order(trial))),
            section("What the fixes that pay change", diffs, folded=not dry),
            section("How it was compared", (Say(said, "soft") for said in remarks(trial))),
            section("Every run", Table(("Run", "The script", "Came out as", "Time"), runs), folded=True),
        ),
    )


def _before_and_after(trial: Trial) -> Table:
    """Those figures that moved, the peak first, and the steps' time whether it did or not, last."""
    shown = [gain for gain in trial.gains if gain.counts or gain.unit == "seconds"]
    shown.sort(key=lambda gain: (gain.unit == "seconds", gain.name != "peak"))
    rows = [(g.name, amount(g.before, g.unit), amount(g.after, g.unit), change(g)) for g in shown]
    return Table(("", "Before", "After", "Change"), rows)


def _card(judged: Judged, trial: Trial) -> Card:
    fix = judged.fix
    facts = [("measured", told(judged)), *(("finding", finding.message) for finding in fix.findings)]
    if not fix.is_safe:
        facts.append(("doubt", fix.fix.unsafe_because or "the linter has not proven that it is safe"))
    if judged.is_our_defect:
        facts.append(("defect", f"this fix was called safe; please report it: {_REPORT_URL}"))
    before = trial.originals.get(fix.file)
    diff = None
    if before is not None:
        diff = Diff(shown_path(fix.file), before, apply_edits(before, [fix.first], unsafe=True)[0])
    style, said = _STYLES[judged.status], fix.fix.message
    return Card(judged.status, style, place(judged), said, tuple(facts), fix.codes, diff=diff)


def _memory(before: RunResult | None, after: RunResult | None) -> Iterator[Chart]:
    """Two runs' memory: the rank with the highest peak."""
    if before is None or after is None or not (pairs := list(zip(before.ranks, after.ranks, strict=False))):
        return
    pair = max(pairs, key=lambda pair: _peak(pair[0].samples))
    one, two = ([s for s in rank.samples if s.allocated is not None] for rank in pair)
    longer = max(one, two, key=len)
    last = max(1, len(longer) - 1)
    series = tuple(
        curve(f"{name}-{when}", f"{words}, {when}", [getattr(s, name) for s in samples], last)
        for name, words in _SERIES
        for samples, when in ((one, "before"), (two, "after"))
    )
    below = tuple((at / last, f"{sample.kind} {sample.step}") for at, sample in enumerate(longer))
    peaks = f"{format_bytes(_peak(one))} before and {format_bytes(_peak(two))} after"
    yield Chart(f"Memory by step: the highest peak is {peaks}", series, below)


def _peak(samples: Sequence[Sample]) -> int:
    return max((s.peak or s.allocated or 0 for s in samples), default=0)


def place(judged: Judged) -> str:
    """`train.py:31`."""
    first = judged.fix.shown
    cell = f":cell {first.cell}" if first.cell is not None else ""
    return f"{shown_path(first.filename)}{cell}:{first.line}"


def in_order(trial: Trial) -> list[Judged]:
    """The fixes as they are told: what pays first, then what is wrong."""
    return sorted(trial.judged, key=lambda one: ([*_STYLES].index(one.status), one.fix.number))


def change(gain: Gain) -> str:
    """`-81 %`; `none left` where nothing is."""
    if not gain.counts:
        return "within noise" if gain.before != gain.after else "same"
    if gain.before and not gain.after:
        return "none left"
    if not gain.before:
        return "new"
    return f"{-100 * gain.share:+.1f} %" if 0.99 < gain.share < 1 else f"{-100 * gain.share:+.0f} %"


def told(judged: Judged) -> str:
    """What a fix saves, or what is wrong with it, in one line."""
    costs = "; ".join(_moved(gain) for gain in judged.gains if gain.is_worse)
    if judged.status != "pays":
        return judged.text or (f"costs: {costs}" if costs else "no figure moves beyond noise")
    saved = [_moved(gain) for gain in judged.gains if gain.is_better][:_MOST_SAVED]
    group = "" if judged.alone else "together with others: "
    return f"{group}{'; '.join(saved)}{f'; costs {costs}' if costs else ''}"


def _moved(gain: Gain) -> str:
    return f"{gain.name} {amount(gain.before, gain.unit)} → {amount(gain.after, gain.unit)}"


def where(trial: Trial) -> str:
    """`train.py: 3 runs, on NVIDIA H200, torch 2.11.0`."""
    runs = plural(len(trial.attempts), "run")
    seconds = sum(attempt.seconds for attempt in trial.attempts)
    parts = [f"{runs} in {seconds:.0f} s"]
    ranks = trial.before.ranks if trial.before is not None else ()
    if ranks and (environment := ranks[0].environment).torch is not None:
        name = environment.device_name or environment.device
        parts.append(f"on {name}" if environment.device == "cuda" else f"on the CPU ({name})")
        parts.append(f"torch {environment.torch}")
    if len(ranks) > 1:
        parts.append(f"{len(ranks)} {'processes' if any(rank.process for rank in ranks) else 'ranks'}")
    return ", ".join(parts)


def remarks(trial: Trial) -> Iterator[str]:
    """What the reader of the figures has to know."""
    if trial.noise:
        yield f"{trial.noise[0].upper()}{trial.noise[1:]}."
    ranks = trial.before.ranks if trial.before is not None else ()
    if trial.gains and all(rank.environment.device != "cuda" for rank in ranks):
        yield "Without a GPU the figures are of what would be on one; reserved memory and waiting for the GPU are not measured."
    yield from trial.doubts
    yield from left(trial)
    defects = [one for one in trial.judged if one.is_our_defect]
    if defects:
        codes = ", ".join(dict.fromkeys(one.fix.codes for one in defects))
        yield (
            f"A fix of {codes} was called safe and is not: that is a defect of gpulint. "
            f"Please report it with the lines of the diff: {_REPORT_URL}"
        )


def left(trial: Trial) -> Iterator[str]:
    """What running finds that no fix speaks of, as `verify` tells it."""
    found = trial.left
    if found is None:
        return
    for growth in found.unpredicted[:_MOST_LEFT]:
        grown = growth_text(growth, found.where).partition(": ")[2]
        yield f"Left, and in no fix{_at(growth.file, growth.line)}: {grown}, {growth.text}."
    for wasted in found.wasted[:_MOST_LEFT]:
        yield f"Left, and in no fix{_at(wasted.file, wasted.line)}: {wasted_title(wasted)}."
    more = len(found.unpredicted[_MOST_LEFT:]) + len(found.wasted[_MOST_LEFT:])
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
        none = "The fix does not pay" if every == 1 else f"None of {every} fixes pays"
        return f"{none}: nothing was written."
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


# -- JSON ------------------------------------------------------------------------------------------------------


def as_json(trial: Trial) -> dict[str, Any]:
    """Everything as plain dicts and lists. `schema` changes when a field changes its meaning."""
    runs = {"before": trial.before, "again": trial.again, "after": trial.after}
    left = trial.left
    return {
        "schema": SCHEMA,
        "version": __version__,
        "target": trial.target,
        "exit_code": trial.exit_code,
        "failure": trial.failure,
        "fixes": [
            {
                "number": one.fix.number,
                "status": one.status,
                "text": one.text,
                "alone": one.alone,
                "gains": _gains(one.gains),
                "findings": [finding.to_json() for finding in one.fix.told],
                "defect_of_gpulint": one.is_our_defect,
            }
            for one in trial.judged
        ],
        "gains": _gains(trial.gains),
        "noise": trial.noise,
        "doubts": list(trial.doubts),
        # What running finds of the program with the fixes that pay; the run itself is among `runs`
        "left": left
        and {
            "drift": left.drift,
            "unpredicted": [one.to_json() for one in left.unpredicted],
            "wasted": [one.to_json() for one in left.wasted],
        },
        "diffs": {path: unified_diff(trial.originals[path], new, path) for path, new in trial.texts.items()},
        "written": list(trial.written),
        "attempts": [attempt.to_json() for attempt in trial.attempts],
        "runs": {name: None if run is None else run.to_json() for name, run in runs.items()},
    }


def _gains(gains: Sequence[Gain]) -> list[dict[str, Any]]:
    return [{**gain.to_json(), "saved": gain.saved} for gain in gains]
