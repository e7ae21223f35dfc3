"""A run held against limits: what was measured, records in and a `Gate` out. Reads source lines and the baseline, and nothing else."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpulint.gate import baselines
from gpulint.gate.baselines import BadBaseline, Baselines, Key
from gpulint.runtime.record.gate import Check, Gate, Limits, LineAtPeak, Peak, PeakOfRank, Status
from gpulint.runtime.record.peaks import STRETCHES, PeakLine, StretchPeak, main_of
from gpulint.runtime.record.result import RankResult, RunResult
from gpulint.source.sources import Sources
from gpulint.units import format_bytes

ON_GPU = "what torch's caching allocator has allocated"
ON_CPU = "live tensor storages of a run on the CPU, as the allocator would round them"
_MOST_CODE = 160
_TOLD = 4  # lines of a check


def subject_of(target: str, arguments: Sequence[str], module: bool, baseline: str) -> str:
    """What a baseline knows a program by: the script, relative to the baseline's folder, or the module, with its arguments."""
    first = ["-m", target] if module else [baselines.relative_to(baseline, os.path.abspath(target))]
    return shlex.join([*first, *arguments])


def judge(run: RunResult, limits: Limits, subject: str, command: str) -> Gate:
    """Hold a run that has ended well against its limits. `subject` is what the baseline knows the program by, `command` what
    would write the entries that it lacks."""
    silent = [rank.rank for rank in run.ranks if not rank.peaks]
    gate = unjudged(run, limits)
    measured = gate.ranks
    if silent or not measured:
        which = f"rank {', '.join(map(str, silent))}" if silent and len(run.ranks) > 1 else "the script"
        return replace(gate, problems=(f"{which} ended before its peak was known",))
    if limits.max_peak is not None:
        gate = replace(gate, checks=_held_against(measured, run, limits.max_peak))
    if not limits.baseline:
        return gate
    if limits.write and run.end.reason == "timeout":
        said = f"the time was up before the run was at its end: nothing was written to {limits.baseline}"
        return replace(gate, problems=(*gate.problems, said))
    # Of several machines each sees its own
    world = max(len(run.ranks), *(rank.world_size for rank in run.ranks))
    keys = {peak.rank: Key(subject, peak.card, peak.torch, world, peak.rank) for peak in measured}
    try:
        return _written(gate, keys) if limits.write else _compared(gate, keys, command)
    except BadBaseline as error:  # it was fine before the run; what was measured is told all the same
        return replace(gate, problems=(*gate.problems, str(error)))


def unjudged(run: RunResult, limits: Limits) -> Gate:
    """What was measured, held against nothing: of a script that failed it is how far it came."""
    measured = tuple(peak_of(rank, limits.baseline) for rank in run.ranks if rank.peaks)
    on_gpu = any(rank.environment.device == "cuda" for rank in run.ranks)
    return Gate(limits, ON_GPU if on_gpu else ON_CPU, measured)


# -- what was measured ---------------------------------------------------------------------------------------


def peak_of(rank: RankResult, baseline: str = "") -> PeakOfRank:
    """The peaks of one process. Where no step was sampled its evaluations are what counts."""
    assert rank.peak is not None, "asked of processes that got to their steps"
    main = main_of(rank.peaks)
    others = {peak.stretch: peak for peak in rank.peaks if peak is not main}
    environment = rank.environment
    return PeakOfRank(
        allocated=main.allocated,
        reserved=rank.most_reserved,
        drift=sum(leak.bytes_per_step for leak in rank.leaks()),
        others={name: peak.allocated for name, peak in others.items()},
        lines=lines_of(main, baseline),
        other_lines={name: lines_of(peak, baseline) for name, peak in others.items()},
        rank=rank.rank,
        card=(environment.device_name or "GPU") if environment.device == "cuda" else baselines.CPU,
        torch=baselines.torch_minor(environment.torch or ""),
        main=main.stretch,
        run=rank.peak.allocated,
    )


def lines_of(peak: StretchPeak, baseline: str = "") -> tuple[LineAtPeak, ...]:
    """The lines of a peak with their text, as a baseline there would name their files; and what no line accounts for."""
    sources = Sources()
    return tuple(_line(line, baseline, sources) for line in peak.lines)


def _line(line: PeakLine, baseline: str, sources: Sources) -> LineAtPeak:
    text = sources.lines(line.file) if line.file else []
    code = text[line.line - 1].strip()[:_MOST_CODE] if 1 <= line.line <= len(text) else ""
    shown = baselines.relative_to(baseline or os.path.join(os.getcwd(), "_"), line.file)
    return LineAtPeak(shown, line.line, line.function, code, line.bytes, line.file, line.kept, line.holder)


# -- the limit -----------------------------------------------------------------------------------------------


def _held_against(measured: Sequence[PeakOfRank], run: RunResult, limit: int) -> tuple[Check, ...]:
    """The rank with the highest peak decides; the stretch in which that was is named."""
    assert run.highest is not None, "there are ranks with peaks"
    number, highest = run.highest
    (worst,) = (peak for peak in measured if peak.rank == number)
    who = _who(worst, measured)
    lines: tuple[LineAtPeak, ...] = ()
    if worst.run <= limit:
        text = (
            f"the peak{who} is {format_bytes(worst.run)}, {format_bytes(limit - worst.run)} below the limit"
        )
    else:
        text = (
            f"{format_bytes(worst.run)} were allocated at the peak of {STRETCHES[highest.stretch]}{who}: "
            f"{format_bytes(worst.run - limit)} more than the {format_bytes(limit)} of --max-peak"
        )
        if highest.stretch != worst.main:
            text += f" (at most {format_bytes(worst.allocated)} in {STRETCHES[worst.main]})"
        lines = lines_of(highest)[:_TOLD]
    status: Status = "exceeded" if worst.run > limit else "within"
    return (Check("max-peak", status, worst.rank, highest.stretch, worst.run, limit, None, text, lines),)


def _who(peak: PeakOfRank, measured: Sequence[PeakOfRank]) -> str:
    return f" on rank {peak.rank}" if len(measured) > 1 else ""


# -- the baseline --------------------------------------------------------------------------------------------


def _written(gate: Gate, keys: Mapping[int, Key]) -> Gate:
    # What comes after the sampled steps depends on how fast the machine is: how far a run gets until it is ended.
    peaks = {
        keys[peak.rank]: replace(
            peak, others=_without_later(peak.others), other_lines=_without_later(peak.other_lines)
        )
        for peak in gate.ranks
    }
    baselines.add(gate.limits.baseline, peaks)
    return replace(gate, written=len(peaks))


def _without_later(by_stretch: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in by_stretch.items() if name != "later"}


def _compared(gate: Gate, keys: Mapping[int, Key], command: str) -> Gate:
    limits = gate.limits
    known = baselines.read(limits.baseline)
    missing = [key for key in keys.values() if known.look_up(key) is None]
    if missing:
        return replace(gate, problems=(*gate.problems, _missing(missing[0], known, limits.baseline, command)))
    checks: list[Check] = []
    notes: list[str] = []
    for peak in gate.ranks:
        before = known.look_up(keys[peak.rank])
        assert before is not None
        checks += _against(peak, before, limits, _who(peak, gate.ranks))
        notes += _not_compared(peak, before, _who(peak, gate.ranks))
    exceeded = sorted((c for c in checks if c.status == "exceeded"), key=_urgency)
    rest = [check for check in checks if check.status != "exceeded"]
    return replace(gate, checks=(*gate.checks, *exceeded, *rest), notes=(*gate.notes, *dict.fromkeys(notes)))


def _urgency(check: Check) -> tuple[bool, int, int]:
    """The sampled steps first, and of those the most bytes too many."""
    return check.stretch != "steps", check.allowed - check.now, check.rank


def _missing(key: Key, known: Baselines, path: str, command: str) -> str:
    """Why nothing was compared, and what adds the entry."""
    listed = known.elsewhere(key)
    has = f"; it has one for {' and for '.join(listed)}" if listed else ""
    return f"{path} has no peak of `{key.subject}` for {key.where}{has}: nothing was compared; add it with `{command}`"


def _against(peak: PeakOfRank, before: Peak, limits: Limits, who: str) -> list[Check]:
    found: list[Check] = []
    for one in baselines.compare(peak, before, limits.tolerance):
        stretch = one.stretch or peak.main
        had = one.before or 0
        what = f"the peak of {STRETCHES.get(stretch, stretch)}{who}"
        known = f"{format_bytes(had)} in the baseline"
        changed = abs(one.now - had)
        by = f"{format_bytes(one.now)}, {format_bytes(changed)} ({_percent(changed, had)})"
        lines: tuple[LineAtPeak, ...] = ()
        if one.status == "exceeded":
            text = f"{what} grew to {by} more than {known} (tolerance {limits.tolerance:g} %)"
            if stretch != "start" or one.now > peak.allocated or not found or found[0].status != "exceeded":
                # Or else the steps of warm-up are what is sampled later
                lines = _grown(peak, before, one.stretch)
        elif one.status == "fell":
            renew = "renew the baseline with --write-baseline, so that it cannot grow back unseen"
            text = f"{what} fell to {by} less than {known}: {renew}"
        else:
            text = f"{what} is {format_bytes(one.now)}, {known}"
        found.append(replace(one, rank=peak.rank, stretch=stretch, text=text, lines=lines))
    return found


def _not_compared(peak: PeakOfRank, before: Peak, who: str) -> list[str]:
    """Stretches that only one of the two runs came to."""
    said = []
    for name in sorted((peak.others.keys() ^ before.others.keys()) - {"later"}):
        why = "the baseline has none" if name in peak.others else "this run did not come to it"
        said.append(f"{STRETCHES.get(name, name)}{who} was not compared: {why}")
    return said


def _grown(peak: PeakOfRank, before: Peak, stretch: str) -> tuple[LineAtPeak, ...]:
    """The lines of a stretch that have more bytes than they had; where none has, or the baseline has no lines, those with most."""
    now = peak.other_lines.get(stretch, ()) if stretch else peak.lines
    known = before.other_lines.get(stretch, ()) if stretch else before.lines
    if not known:
        return now[:_TOLD]
    # First what stands somewhere: of what has no Python line nobody can say more.
    found = sorted(baselines.grown(now, known), key=lambda line: not line.file)
    return tuple(found[:_TOLD]) or now[:_TOLD]


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "from nothing"
