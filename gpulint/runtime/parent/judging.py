"""One judge for each kind of claim: a finding and one rank's evidence in, a judgement out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from gpulint.claims import Kind
from gpulint.findings import Finding
from gpulint.runtime.parent import growth, judgement, source
from gpulint.runtime.parent.evidence import Evidence, Share, Spot, real
from gpulint.runtime.parent.judgement import Case, Judgement, confirmed, inconclusive, refuted, size, times
from gpulint.runtime.record.result import Drift, ForwardFigures, Holder
from gpulint.units import options, plural

FRAGMENTED = 1.3  # times the peak of allocated: reserved beyond this is lost to fragments
_OFF = ("", "False", "None")
TOP = 0.98  # of the step's peak: what is above is the peak


def nodes_text(number: float) -> str:
    """`1 autograd node`, `12 autograd nodes`."""
    return plural(round(number), "autograd node")


def judge(finding: Finding, evidence: Evidence) -> Judgement:
    """The judgement of the claim's kind, with how often the line ran."""
    case = Case(finding, evidence)
    judge = _JUDGES[case.claim.kind]
    if judge.without_gpu and case.claim.device_only and not evidence.on_device:
        found = case.cannot_tell(judge.without_gpu)
    else:
        found = judge.problem(case) or judge.judge(case)
    return found if found.hits is not None else replace(found, hits=case.figures.hits)


# -- growth --------------------------------------------------------------------------------------------------


def _drift(case: Case) -> Judgement:
    evidence = case.evidence
    holders, born = evidence.holders(case.finding), evidence.born_at(case.finding)
    grown = [(holder, evidence.growth(holder)) for holder in holders]
    share = Share.of(one for _, one in grown)
    leaking = [drift for drift in born if drift.status == "leak"]
    if not share and leaking:
        share = Share.of(map(Share.of_drift, leaking))
    if share:
        keepers = [h for h in evidence.rank.holders if any(h.kept_of(drift.site) for drift in leaking)]
        growing = [holder for holder, one in grown if one] or keepers
        return _confirmed_drift(share, growing, leaking, evidence)
    weaker = [*born, *(drift for holder in holders for drift in evidence.drifts_of(holder))]
    return _explained(case, holders, weaker) or case.unmeasured() or _not_grown(case)


def _confirmed_drift(
    share: Share, holders: list[Holder], leaking: list[Drift], evidence: Evidence
) -> Judgement:
    heap = evidence.heap_slope(evidence.kind_of(holders[0]) if holders else None) if share.nodes else None
    host = share.host + (heap or 0.0) if share.host or heap is not None else None
    parts = [f"{judgement.rate(share)} stays {evidence.where}"]
    if share.host:
        parts.append(f"{size(share.host)} a step of tensors on the host")
    if share.nodes:
        pile = "piles" if round(share.nodes) == 1 else "pile"
        parts.append(f"{nodes_text(share.nodes)} a step {pile} up on the host")
    sites = {held.site: held.bytes for holder in holders for held in holder.births}
    born = tuple(sorted(sites, key=lambda site: -sites[site])) or tuple(d.site for d in leaking)
    return confirmed(
        "; ".join(parts),
        device=share.device,
        host=host,
        nodes=share.nodes or None,
        negligible=share.device <= judgement.NEGLIGIBLE,
        holder=evidence.text_of(max(holders, key=lambda h: (h.bytes, h.nodes))) if holders else "",
        born=born[:5],
    )


def _explained(case: Case, holders: list[Holder], drifts: list[Drift]) -> Judgement | None:
    """What survived at the finding's place without being a leak."""
    garbage = [drift for drift in drifts if drift.status == "gc-garbage"]
    if garbage and case.claim.kind == "cycle":
        amount = sum(drift.bytes_per_step for drift in garbage)
        text = f"{size(amount)} a step waits in reference cycles for gc.collect()"
        return confirmed(text, bytes=round(amount))
    piled = [drift for drift in drifts if drift.released and drift.place == "device"]
    if piled:
        most = max(piled, key=lambda drift: drift.total)
        text = f"{size(sum(d.bytes_per_step for d in piled))} a step pile up until the end of {judgement.per(most.released)}"
        return confirmed(f"{text}, which lets go of it", bytes=sum(d.total for d in piled))
    limited = next((h for h in holders if h.bound is not None and not h.limit), None)
    if limited is not None:
        text = f"kept by {limited.text}, which holds at most {limited.bound}"
        return refuted(text, holder=limited.text)
    for status in ("bounded", "filling", "unsettled", "occasional", "gc-garbage"):
        found = next((drift for drift in drifts if drift.status == status), None)
        if found is not None:
            judged = refuted if status in ("bounded", "gc-garbage") else inconclusive
            return judged(f"{size(found.total)} survived: {found.reason}")
    return None


def _not_grown(case: Case) -> Judgement:
    """Refuted, if the line ran often enough in steps in which growth would have been seen, and nothing else grew."""
    passes = case.figures.judged_hits or 0
    if passes < judgement.FEWEST:
        told = f"{f'only {passes}' if passes else 'none'} of the steps in which growth would have been seen"
        return inconclusive(f"{told} ran the line; run more with --steps")
    grown = growth.unexplained([case.evidence])
    if grown:
        more = f"{size(grown[0].device)} {judgement.per('step')} grew that nothing explains"
        return inconclusive(f"nothing was found that the line keeps, but {more}")
    return refuted(f"the line ran in {passes} of the steps that were judged, and nothing grew")


# -- forwards ------------------------------------------------------------------------------------------------


def forwards_of(finding: Finding, evidence: Evidence) -> list[ForwardFigures]:
    """The forwards that a claim about a forward means."""
    kind = finding.runtime_claim.kind
    if kind == "forward":
        return evidence.forwards(finding)
    if kind != "guard":
        return []
    # the first forward after the line, in the same file
    file = real(finding.filename)
    later = [f for f in evidence.rank.forwards if real(f.site.file) == file and f.site.line >= finding.line]
    first = min((f.site.line for f in later), default=0)
    return [f for f in later if f.site.line == first]


def _forward(case: Case) -> Judgement:
    every, evidence = forwards_of(case.finding, case.evidence), case.evidence
    if not every:
        if case.figures.hits:
            return inconclusive(f"{case.ran}, but no module's forward was seen there")
        return case.unmeasured() or inconclusive("no module's forward was seen there")
    found = [forward for forward in every if not forward.training] or every  # a helper may serve training too
    keeping = [forward for forward in found if forward.grad and forward.kept]
    count = sum(forward.count for forward in found)
    if case.claim.unvisited and _is_needed(keeping, set(evidence.spots(case.finding))):
        text = f"ran {times(count)} with grad enabled, and a backward went through its graph"
        return refuted(text, hits=count)
    if keeping:
        worst = max(keeping, key=lambda forward: forward.kept or 0)
        runs = sum(forward.count for forward in keeping)
        mode = "eval" if not worst.training else "train"
        unused = ", and no backward went through its graph" if worst.dead and not worst.visited else ""
        kept = f"{'up to ' if runs > 1 else ''}{size(worst.kept or 0)} of activations"
        ran = f"{worst.module} ran {times(runs)} with grad enabled, in {mode} mode{unused}"
        text = f"{ran}: a call keeps {kept}"
        piled = grown_through(keeping, evidence)
        share = Share.of(evidence.growth(holder) for holder in piled)
        judged = _confirmed_drift(share, piled, [], evidence) if share else confirmed(text)
        text = f"{text}; it grows: {judged.text}" if share else text
        return replace(judged, text=text, bytes=worst.kept, hits=count)
    if any(forward.grad for forward in found):
        return refuted(f"ran {times(count)} with grad enabled, and kept no activations", hits=count)
    return refuted(f"ran {times(count)}, with grad disabled", hits=count)


def _is_needed(keeping: list[ForwardFigures], spots: set[Spot]) -> bool:
    """Whether a backward went through the graph of each forward that keeps something. One that is reached through a function has other
    callers, whose backward it may have been."""
    own = all((real(forward.site.file), forward.site.line) in spots for forward in keeping)
    unused = any(forward.dead or not forward.visited for forward in keeping if forward.weights)
    return own and not unused and any(forward.visited for forward in keeping)


def grown_through(forwards: Iterable[ForwardFigures], evidence: Evidence) -> list[Holder]:
    """The growing holders that keep the graphs of these forwards: most of what they keep was born in the functions that run
    them."""
    sites = (one.site for one in forwards if one.grad and one.kept and not one.visited)
    functions = {(real(site.file), site.function) for site in sites}
    found = []
    for holder in evidence.rank.holders:
        own = sum(h.bytes for h in holder.births if (real(h.site.file), h.site.function) in functions)
        if 2 * own > holder.bytes and (holder.through_graph or holder.nodes) and evidence.growth(holder):
            found.append(holder)
    return found


def is_wasted(forward: ForwardFigures, evidence: Evidence) -> bool:
    """Whether a forward's graphs died again and again and no backward ever went through one. A module without
    parameters has its graph from what it is given, so it is not to blame."""
    if forward.visited or forward.dead < judgement.OFTEN or not forward.weights:
        return False
    peak = max((s.peak for s in evidence.rank.samples if s.peak is not None), default=0)
    return (forward.wasted or 0) >= max(judgement.NOTICED, peak * judgement.NOTICED_SHARE)


# -- peaks ---------------------------------------------------------------------------------------------------


def _late(case: Case) -> Judgement:
    file, line, name = case.finding.filename, case.finding.line, case.finding.subject
    held = (case.figures.tensors or {}).get(name)
    loop = source.around(file, line)
    if held is None or not loop:
        return inconclusive("the size of the value was not measured")
    idle = source.idle_lines(loop, name, line)
    watched = {one.lineno: case.evidence.line(file, one.lineno) for one in loop}
    levels = {one: figures.level or 0 if figures is not None else 0 for one, figures in watched.items()}
    top_idle = max((levels[one] for one in idle), default=0)
    top_used = max((level for one, level in levels.items() if one not in idle), default=0)
    if not top_idle:
        return inconclusive(f"`{name}` is {size(held)}; memory after the line was not measured")
    where = max(idle, key=lambda one: levels[one])
    saving = max(0, top_idle - max(top_used, top_idle - held))
    if saving <= 0 or top_idle < TOP * max(levels.values()):
        used = f"the peak of {size(top_used)} is reached while it is in use"
        return refuted(f"`{name}` ({size(held)}) is kept, but {used}", bytes=0)
    lowers = f"releasing it in time lowers the peak by up to {size(saving)}"
    text = (
        f"`{name}` ({size(held)}) is still alive at the peak of {size(top_idle)}, on line {where}; {lowers}"
    )
    return confirmed(text, bytes=saving, negligible=saving <= judgement.NEGLIGIBLE)


def _deferred(case: Case) -> Judgement:
    evidence = case.evidence
    per_step = (case.figures.sampled_hits or 0) / max(1, evidence.rank.steps())
    kept = _kept_in_training(evidence)
    if per_step < 1.5:
        return refuted(f"the line runs {per_step:.1f} times a step: there is nothing to defer")
    if not kept:
        return inconclusive("the activations of a forward were not measured")
    base = min((s.allocated for s in evidence.rank.samples if s.sampled and s.allocated), default=None)
    peak = max((s.peak for s in evidence.rank.samples if s.sampled and s.peak), default=None)
    saving = round(kept * (per_step - 1))
    if base is not None and peak is not None and peak - base < 0.7 * kept * per_step:
        return refuted(f"the peak is only {size(peak - base)} above the step's end: no batches pile up")
    lowers = f"a backward for each lowers it by about {size(saving)}"
    text = f"{per_step:.0f} micro-batches of {size(kept)} each are alive at the peak; {lowers}"
    return confirmed(text, bytes=saving)


def _kept_in_training(evidence: Evidence) -> int:
    return max((f.kept or 0 for f in evidence.rank.forwards if f.grad and f.training), default=0)


def _retained(case: Case) -> Judgement:
    kept = _kept_in_training(case.evidence)
    if case.figures.growth is None or not kept:
        return inconclusive("what the backward frees was not measured")
    freed = max(0, -case.figures.growth)
    if freed > kept / 2:
        return refuted(f"the backward freed {size(freed)} of activations all the same")
    text = f"the backward leaves up to {size(kept - freed)} of saved tensors allocated"
    return confirmed(text, bytes=kept - freed)


def _cycle(case: Case) -> Judgement:
    """Growth, or garbage, or else what the backward leaves allocated until the gradients go."""
    found = _drift(case)
    return found if found.status == "confirmed" else case.unmeasured() or _retained(case)


def _growth(case: Case) -> Judgement:
    figures = case.figures
    rise = max((b for b in (figures.early, figures.peak) if b is not None), default=None)
    if rise is None:
        return inconclusive("what the line allocates was not measured")
    if case.claim.kind == "alias":
        if rise == 0:
            text = f"{case.ran} and allocated nothing: what it keeps are the model's own tensors"
            return confirmed(text, bytes=0, negligible=True)
        return refuted(f"{case.ran} and allocated {size(rise)}: it makes a copy")
    if rise == 0:
        return refuted(f"{case.ran} and allocated nothing")
    if figures.growth is not None and figures.growth > 0:
        return confirmed(f"the line leaves {size(figures.growth)} allocated", bytes=figures.growth)
    return confirmed(f"{case.ran} and allocates {size(rise)} each time", bytes=rise)


def _useless(case: Case) -> Judgement:
    growth = case.figures.growth
    if growth is None:
        return inconclusive("what the line frees was not measured")
    if growth < 0:
        return refuted(f"the line frees {size(-growth)}")
    return confirmed(f"{case.ran} and freed nothing", bytes=0)


def _handler(case: Case) -> Judgement:
    hits, level = case.figures.hits, case.figures.level
    if hits is None:
        return inconclusive("whether the handler ran could not be counted")
    if not hits:
        return Judgement("not reached", "no out-of-memory error was raised, so the handler did not run")
    samples = case.evidence.rank.samples
    at_rest = min((s.allocated for s in samples if s.allocated is not None), default=None)
    held = level - at_rest if level is not None and at_rest is not None and level > at_rest else None
    more = "" if held is None else f", with {size(held)} more allocated than between steps"
    return confirmed(f"the handler ran {times(hits)}{more}", bytes=held)


# -- time, settings, source ----------------------------------------------------------------------------------


def _time(case: Case) -> Judgement:
    evidence, steps = case.evidence, case.evidence.rank.steps()
    calls = [call for call in evidence.calls(case.finding, case.claim.calls) if call.sampled]
    if not calls or not steps:
        unseen = f"no call of {' or '.join(case.claim.calls)} was seen from the line"
        return case.unmeasured() or inconclusive(unseen)
    count, spent = sum(call.sampled for call in calls), sum(call.seconds for call in calls)
    per_step, step, work = spent / steps, evidence.step_seconds(), evidence.work_seconds()
    often = f"{calls[0].what} ran {times(count)} in {evidence.steps_text()}"
    if case.claim.device_only and not evidence.on_device:
        return inconclusive(f"{often}; without a GPU it does nothing, so its cost was not measured")
    freed = sum(call.freed or 0 for call in calls)
    if freed / count > judgement.NEGLIGIBLE:
        text = f"{often}, and freed {size(freed / count)} a call of tensors that wait in reference cycles"
        return refuted(text, bytes=round(freed / count), seconds=per_step)
    if not work or per_step < judgement.NOTABLE * work:
        return refuted(f"{often}, and took {per_step * 1e6:.0f} µs a step", seconds=per_step)
    share = per_step / step if step else 0.0
    text = f"{often}: {per_step * 1000:.2f} ms a step, {share:.0%} of its time"
    if any(call.freed is not None for call in calls):
        nothing = ", and it freed nothing on the device"
        text += nothing if freed <= 0 else f", for {size(freed / count)} freed a call"
    released = sum(call.released or 0 for call in calls)
    if released > 0:
        text += f"; it gave back {size(released / count)} a call, which the next step takes again"
    return confirmed(text, seconds=per_step)


def _setting(case: Case) -> Judgement:
    rank = case.evidence.rank
    if rank.end.refusal:
        return confirmed(f"torch refused the setting: {rank.end.refusal}")
    settings = rank.environment.allocator
    if settings is None or case.figures.hits == 0:
        return case.cannot_tell("the allocator's settings can be read back only on a machine with a GPU")
    in_force = {key for key, value in options(settings) if value not in _OFF}
    missing = [name for name in case.claim.options if name not in in_force]
    if missing:
        return confirmed(f"the allocator runs without {', '.join(missing)}: {settings}")
    reserved, peak = rank.most_reserved, rank.peak
    if case.claim.fragments and reserved and peak is not None and peak.allocated:
        ratio = reserved / peak.allocated
        text = f"reserved is {ratio:.2f} times the peak of allocated ({size(reserved)} for {size(peak.allocated)})"
        if ratio > FRAGMENTED:
            return confirmed(text)
        return inconclusive(f"{text} in this run; what splits badly shows in longer ones")
    return inconclusive(f"the allocator's settings are: {settings}")


def _code(case: Case) -> Judgement:
    return inconclusive("not measurable by a run: this is about how the code reads")


class _Judge(NamedTuple):
    """Who judges claims of a kind, what `problem` with the line keeps them from it, and why a claim about the device cannot be told
    `without_gpu`."""

    judge: Callable[[Case], Judgement]
    problem: Callable[[Case], Judgement | None] = lambda case: None
    without_gpu: str = ""


_LANDING = "where the tensors land shows only on a machine with a GPU"
_WEIGHTS = "where the weights are shows only on a machine with a GPU"
_JUDGES: Mapping[Kind, _Judge] = {
    "drift": _Judge(_drift),
    "cycle": _Judge(_cycle),
    "forward": _Judge(_forward),
    "guard": _Judge(_forward),
    "late": _Judge(_late, Case.unmeasured),
    "deferred": _Judge(_deferred, Case.unmeasured),
    "retained": _Judge(_retained, Case.unmeasured),
    "handler": _Judge(_handler),
    "time": _Judge(_time),
    "growth": _Judge(_growth, Case.uncounted, _LANDING),
    "transient": _Judge(judgement.transient, Case.uncounted, _WEIGHTS),
    "gathered": _Judge(judgement.gathered, Case.never_ran),
    "transfer": _Judge(
        judgement.transfer, Case.unmeasured, "without a GPU nothing is copied and nothing waits"
    ),
    "garbage": _Judge(judgement.garbage),
    "context": _Judge(judgement.context, Case.never_ran, "contexts are there only on a machine with GPUs"),
    "alias": _Judge(_growth, Case.uncounted, _LANDING),
    "useless": _Judge(_useless, Case.unmeasured),
    "setting": _Judge(_setting),
    "code": _Judge(_code),
}
