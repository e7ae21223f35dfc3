"""A program that is run to be held against limits: who else is on the cards, the run, the judgement, of what it holds and does not use
and of contexts on cards that are another's too."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from gpulint.gate import baselines, judging
from gpulint.operator import gpu
from gpulint.runtime.parent.runner import Run
from gpulint.runtime.parent.standing import host_text, idle_text
from gpulint.runtime.parent.verdict import Verification
from gpulint.runtime.parent.verifying import OnProgress
from gpulint.runtime.record.gate import Check, ForeignContext, Gate, Limit, Limits, Neighbour
from gpulint.runtime.record.peaks import CardUse
from gpulint.runtime.record.result import End, Progress, RankResult, RunResult
from gpulint.units import format_bytes

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
    as for `judging.judge`. Without limits only the contexts of its ranks are looked at."""
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
        gate = judging.judge(verification.run, limits, subject, command) if on_cards else gate
        gate = replace(gate, checks=(*gate.checks, *checks(verification, limits)))
    elif verification.run.end.reason != "no-device":
        gate = judging.unjudged(verification.run, limits)
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
