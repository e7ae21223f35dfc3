"""A program that is run to be held against limits: who else is on the cards, the run, the judgement of its peaks, of what it holds and
does not use, and of contexts on cards that are another's too."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from gpulint.operator import gpu
from gpulint.runtime.parent.runner import OnProgress, Run
from gpulint.runtime.parent.standing import host_text, idle_text
from gpulint.runtime.parent.verdict import Verification
from gpulint.runtime.record.peaks import (
    STRETCHES,
    CardUse,
    Check,
    ForeignContext,
    Gate,
    Limit,
    Limits,
    LineAtPeak,
    Neighbour,
    Peak,
    PeakLine,
    PeakOfRank,
    Status,
    StretchPeak,
    main_of,
)
from gpulint.runtime.record.result import End, Progress, RankResult, RunResult
from gpulint.source.sources import Sources
from gpulint.testing import baselines
from gpulint.testing.baselines import BadBaseline, Key
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
        below = format_bytes(limit - worst.run)
        text = f"the peak{who} is {format_bytes(worst.run)}, {below} below the limit"
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
    peaks: dict[Key, Peak] = {}
    for peak in gate.ranks:
        # What comes after the sampled steps depends on how fast the machine is: how far a run gets until it is ended.
        others = {name: size for name, size in peak.others.items() if name != "later"}
        lines = {name: listed for name, listed in peak.other_lines.items() if name != "later"}
        peaks[keys[peak.rank]] = replace(peak, others=others, other_lines=lines)
    baselines.add(gate.limits.baseline, peaks)
    return replace(gate, written=len(peaks))


def _compared(gate: Gate, keys: Mapping[int, Key], command: str) -> Gate:
    limits = gate.limits
    known = baselines.read(limits.baseline)
    missing = [key for key in keys.values() if key not in known]
    if missing:
        return replace(gate, problems=(*gate.problems, _missing(missing[0], known, limits.baseline, command)))
    checks: list[Check] = []
    notes: list[str] = []
    for peak in gate.ranks:
        before = known[keys[peak.rank]]
        checks += _against(peak, before, limits, _who(peak, gate.ranks))
        notes += _not_compared(peak, before, _who(peak, gate.ranks))
    exceeded = [check for check in checks if check.status == "exceeded"]
    # The sampled steps first, and of those the most bytes too many
    exceeded.sort(key=lambda one: (one.stretch != "steps", one.allowed - one.now, one.rank))
    rest = [check for check in checks if check.status != "exceeded"]
    return replace(gate, checks=(*gate.checks, *exceeded, *rest), notes=(*gate.notes, *dict.fromkeys(notes)))


def _missing(key: Key, known: baselines.Peaks, path: str, command: str) -> str:
    """Why nothing was compared, and what adds the entry."""
    listed = baselines.elsewhere(known, key)
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
    return [
        f"{STRETCHES.get(name, name)}{who} was not compared: "
        + ("the baseline has none" if name in peak.others else "this run did not come to it")
        for name in sorted((peak.others.keys() ^ before.others.keys()) - {"later"})
    ]


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


Sizes = Mapping[tuple[str, int], int]  # (the card's uuid, process) -> bytes, as the driver tells

REMEDY = (
    "call `torch.cuda.set_device(local_rank)` before anything that uses CUDA, and load with `map_location`"
)


def foreign_contexts(run: RunResult, sizes: Sizes) -> tuple[ForeignContext, ...]:
    """Each context of a rank on the card that another rank computes on, and it does not itself."""
    owners: dict[str, int] = {}
    for rank in run.ranks:
        for card in rank.cards:
            if card.own:
                owners.setdefault(_identity(card), rank.rank)
    return tuple(
        _foreign(rank, card, owners[_identity(card)], sizes.get((_identity(card), rank.pid)))
        for rank in run.ranks
        for card in rank.cards
        if card.context and not card.own and _identity(card) in owners
    )


def _identity(card: CardUse) -> str:
    """The same for every process: its number depends on which cards a process is shown."""
    return card.uuid.removeprefix("GPU-").lower() or f"{card.index} {card.name}"


def _foreign(rank: RankResult, card: CardUse, owner: int, size: int | None) -> ForeignContext:
    taken = "what it takes there the driver does not tell" if size is None else f"{format_bytes(size)}"
    tensors = f", {format_bytes(card.allocated)} of it in tensors" if card.allocated else ""
    first = ""
    if rank.first_use is not None:
        where = rank.first_use
        first = f"; it used CUDA first at {os.path.basename(where.file)}:{where.line} in {where.function}"
    text = (
        f"rank {rank.rank} has a CUDA context on GPU {card.index}, the card of rank {owner} ({taken}{tensors}){first}: "
        f"{REMEDY}"
    )
    return ForeignContext(rank.rank, card.index, card.name, owner, size, text)


def checks(verification: Verification, limits: Limits) -> Iterator[Check]:
    """The run held against these limits, as far as they are set."""
    if limits.untouched is not None:
        found = [(one.what.bytes, f"{one.what.text}: {idle_text(one)}") for one in verification.idle]
        check = _check("untouched", "are alive and were touched by nothing", limits.untouched, found)
        besides = [rank.besides for rank in verification.run.ranks]
        if not any(one.watched for one in besides):  # nothing is within a limit that was not looked for
            why = next((one.doubt for one in besides if one.doubt), "no step was followed")
            check = replace(check, status="exceeded", text=f"what nothing touches is not known: {why}")
        yield check
    if limits.host_drift is not None:
        grown = [(round(one.per_step), host_text(one)) for one in verification.host_growth]
        yield _check("max-host-drift", "of host memory stay a step", limits.host_drift, grown)


def _check(limit: Limit, what: str, allowed: int, found: Sequence[tuple[int, str]]) -> Check:
    now = sum(size for size, _ in found)
    text = f"{format_bytes(now)} {what}, and {format_bytes(allowed)} may"
    if now > allowed:
        text += f"; most of it: {found[0][1]}"
    return Check(limit, "exceeded" if now > allowed else "within", 0, "steps", now, allowed, None, text)


Measure = Callable[[Run, OnProgress], Verification]

_LEAVING = 3.0  # seconds that a process which has ended may take to be off its card


def check(limits: Limits, device: str) -> None:
    """Refuse what could not be judged before anything runs. Raises ValueError with one sentence."""
    if limits.write and not limits.baseline:
        raise ValueError("--write-baseline needs --baseline FILE, the file that the peaks are written to")
    if not 0 <= limits.tolerance < float("inf"):
        raise ValueError("the tolerance is a share in percent, 0 or more")
    if limits.exclusive and device == "cpu":
        raise ValueError("--exclusive is about GPUs, and --device cpu leaves them alone")
    if limits.baseline:
        baselines.read(limits.baseline, missing_is_empty=limits.write)
        if limits.write:
            baselines.check_writable(limits.baseline)


def run_limited(what: Run, limits: Limits, subject: str, command: str, measure: Measure) -> Verification:
    """Run `what` by `measure`, and hold it against `limits`: on a GPU then, unless the CPU was asked for. `subject` and `command`
    as for `judge`. Without limits only the contexts of its ranks are looked at."""
    on_cards = limits.on_peak or limits.exclusive
    if on_cards:
        implied = what.device == "auto"
        device = "cuda" if implied else what.device
        what = replace(what, device=device, limited=implied, peaks=limits.on_peak)
    environment = {**os.environ, **what.environment}
    looks = on_cards and what.device != "cpu"
    cards, blind = gpu.look() if looks else ([], "")
    before = gpu.others(cards, environment)
    if limits.exclusive and (problem := _refusal(before, blind)):
        run = RunResult(what.command(), End("not-started", f"{problem}; --exclusive does not run there"), 0.0)
        return Verification(what.target, run, gate=Gate(limits, neighbours=before))
    sizes: dict[tuple[str, int], int] = {}
    verification = measure(what, _reading_sizes(what, sizes))
    verification = replace(verification, foreign=foreign_contexts(verification.run, sizes))
    if not (on_cards or limits.beside_peak):
        return verification
    gate = Gate(limits)
    if not verification.failed or verification.run.end.reason == "timeout":
        gate = judge(verification.run, limits, subject, command) if on_cards else gate
        gate = replace(gate, checks=(*gate.checks, *checks(verification, limits)))
    elif verification.run.end.reason != "no-device":
        gate = unjudged(verification.run, limits)
    if blind:
        said = f"whether other processes use the card could not be looked at: {blind}"
        gate = replace(gate, notes=(*gate.notes, said))
    came = _newcomers(before, environment) if looks and not blind else ()
    if came and limits.exclusive:
        said = f"{_told(came[0])} came while the program ran, and --exclusive wants the card for it alone"
        gate = replace(gate, problems=(*gate.problems, said))
    return replace(verification, gate=replace(gate, neighbours=(*before, *came)))


def _refusal(others: Sequence[Neighbour], blind: str) -> str:
    """Why the cards are not the program's alone; empty where they are."""
    if blind:
        return f"whether other processes use the card could not be looked at ({blind})"
    return f"{_told(others[0])} uses {others[0].card}" if others else ""


def _newcomers(before: Sequence[Neighbour], environment: Mapping[str, str]) -> tuple[Neighbour, ...]:
    """Who is there after the program that was not before. Its own processes are gone, but the driver may take a moment."""
    known = {(one.uuid, one.pid) for one in before}
    until = time.monotonic() + _LEAVING
    while True:
        now = gpu.others(gpu.look()[0], environment, "after")
        came = tuple(one for one in now if (one.uuid, one.pid) not in known)
        if not came or time.monotonic() > until:
            return came
        time.sleep(0.2)


def _told(one: Neighbour) -> str:
    size = "" if one.bytes is None else f" with {format_bytes(one.bytes)}"
    if not one.pid:
        return f"a process that cannot be seen from here{size}"
    command = " ".join(one.command.split())[:60]
    return f"process {one.pid}{f' ({command})' if command else ''}{size}"


def _reading_sizes(what: Run, sizes: dict[tuple[str, int], int]) -> OnProgress:
    """Notes what each rank takes on each card, as the driver tells it, while they run: once for each, when it samples."""
    several = bool(what.launch) and what.device != "cpu"
    seen: set[int] = set()

    def on_progress(progress: Progress) -> None:
        if not several or not progress.sample.sampled or progress.rank in seen:
            return
        seen.add(progress.rank)
        for card in gpu.look()[0]:
            for tenant in card.tenants:
                key = (card.uuid.removeprefix("GPU-").lower(), tenant.pid)
                if tenant.bytes is not None:
                    sizes[key] = max(sizes.get(key, 0), tenant.bytes)

    return on_progress
