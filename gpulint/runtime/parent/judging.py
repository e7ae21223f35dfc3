"""One judge for each kind of claim: a finding and one rank's evidence in, a judgement out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from gpulint.claims import Claim, Kind
from gpulint.findings import Finding
from gpulint.runtime.parent import growth, placing, source
from gpulint.runtime.parent.evidence import Evidence, Share, Spot, real
from gpulint.runtime.parent.judgement import (
    FEWEST,
    NEGLIGIBLE,
    NOTABLE,
    NOTICED,
    NOTICED_SHARE,
    OFTEN,
    Judgement,
    cannot_tell,
    never_ran,
    per,
    rate,
    size,
    times,
    unmeasured,
)
from gpulint.runtime.record.result import (
    CallFigures,
    Drift,
    ForwardFigures,
    Holder,
)
from gpulint.units import options

FRAGMENTED = 1.3  # times the peak of allocated: reserved beyond this is lost to fragments
_OFF = ("", "False", "None")
TOP = 0.98  # of the step's peak: what is above is the peak


def nodes_text(number: float) -> str:
    """`1 autograd node`, `12 autograd nodes`."""
    return f"{number:.0f} autograd node{'' if round(number) == 1 else 's'}"


def judge(finding: Finding, evidence: Evidence) -> Judgement:
    """The judgement of the claim's kind, with how often the line ran."""
    claim = finding.runtime_claim
    problem = unmeasured(finding, evidence) if claim.kind in _MEASURED else None
    found = problem or _JUDGES[claim.kind](finding, claim, evidence)
    figures = evidence.at(finding)
    return found if figures is None or found.hits is not None else replace(found, hits=figures.hits)


# -- what every judge may have to say ------------------------------------------------------------------------


def _too_few(finding: Finding, evidence: Evidence) -> Judgement | None:
    figures = evidence.at(finding)
    passes = (figures.judged_hits or 0) if figures is not None else 0
    if passes >= FEWEST:
        return None
    told = f"only {passes} of the steps" if passes else "none of the steps"
    text = f"{told} in which growth would have been seen ran the line; run more with --steps"
    return Judgement("inconclusive", text)


# -- growth --------------------------------------------------------------------------------------------------


def _drift(finding: Finding, claim: Claim, evidence: Evidence) -> Judgement:
    holders, born = evidence.holders(finding), evidence.born_at(finding)
    grown = [(holder, evidence.growth(holder)) for holder in holders]
    share = Share.of(one for _, one in grown)
    leaking = [drift for drift in born if drift.status == "leak"]
    if not share and leaking:
        share = Share.of_drifts(leaking)
    if share:
        growing = [holder for holder, one in grown if one] or _keepers(leaking, evidence)
        return _confirmed_drift(share, growing, leaking, evidence)
    weaker = [*born, *(drift for holder in holders for drift in evidence.drifts_of(holder))]
    return (
        _explained(claim, holders, weaker)
        or unmeasured(finding, evidence)
        or _too_few(finding, evidence)
        or _refuted_drift(finding, evidence)
    )


def _keepers(drifts: list[Drift], evidence: Evidence) -> list[Holder]:
    sites = {drift.site for drift in drifts}
    return [h for h in evidence.rank.holders if any(held.site in sites for held in h.births)]


def _confirmed_drift(
    share: Share, holders: list[Holder], leaking: list[Drift], evidence: Evidence
) -> Judgement:
    heap = evidence.heap_slope(evidence.kind_of(holders[0]) if holders else None) if share.nodes else None
    host = share.host + (heap or 0.0) if share.host or heap is not None else None
    on_gpu = "on the GPU" if evidence.on_device else "of what would be on the GPU"
    parts = [f"{rate(share)} stays {on_gpu}"]
    if share.host:
        parts.append(f"{size(share.host)} a step of tensors on the host")
    if share.nodes:
        pile = "piles" if round(share.nodes) == 1 else "pile"
        parts.append(f"{nodes_text(share.nodes)} a step {pile} up on the host")
    sites = {held.site: held.bytes for holder in holders for held in holder.births}
    born = tuple(sorted(sites, key=lambda site: -sites[site])) or tuple(d.site for d in leaking)
    return Judgement(
        "confirmed",
        "; ".join(parts),
        device=share.device,
        host=host,
        nodes=share.nodes or None,
        negligible=share.device <= NEGLIGIBLE,
        holder=evidence.text_of(max(holders, key=lambda h: (h.bytes, h.nodes))) if holders else "",
        born=born[:5],
    )


def _explained(claim: Claim, holders: list[Holder], drifts: list[Drift]) -> Judgement | None:
    """What survived at the finding's place without being a leak."""
    garbage = [drift for drift in drifts if drift.status == "gc-garbage"]
    if garbage and claim.kind == "cycle":
        amount = sum(drift.bytes_per_step for drift in garbage)
        return Judgement(
            "confirmed",
            f"{size(amount)} a step waits in reference cycles for gc.collect()",
            bytes=round(amount),
        )
    piled = [drift for drift in drifts if drift.released and drift.place == "device"]
    if piled:
        most = max(piled, key=lambda drift: drift.total)
        text = f"{size(sum(d.bytes_per_step for d in piled))} a step pile up until the end of {per(most.released)}"
        return Judgement("confirmed", f"{text}, which lets go of it", bytes=sum(d.total for d in piled))
    limited = next((holder for holder in holders if holder.bound is not None), None)
    if limited is not None:
        return Judgement(
            "refuted", f"kept by {limited.text}, which holds at most {limited.bound}", holder=limited.text
        )
    for status, result in (("bounded", "refuted"), ("occasional", "inconclusive"), ("gc-garbage", "refuted")):
        found = next((drift for drift in drifts if drift.status == status), None)
        if found is not None:
            text = f"{size(found.total)} survived: {found.reason}"
            return Judgement("refuted" if result == "refuted" else "inconclusive", text)
    return None


def _refuted_drift(finding: Finding, evidence: Evidence) -> Judgement:
    figures = evidence.at(finding)
    passes = figures.judged_hits or 0 if figures is not None else 0
    grown = growth.unexplained([evidence])
    if grown:
        more = f"{size(grown[0].device)} {per('step')} grew that nothing explains"
        return Judgement("inconclusive", f"nothing was found that the line keeps, but {more}")
    return Judgement("refuted", f"the line ran in {passes} of the steps that were judged, and nothing grew")


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


def _forward(finding: Finding, claim: Claim, evidence: Evidence) -> Judgement:
    found = forwards_of(finding, evidence)
    if claim.unvisited:
        needed = _needed([f for f in found if not f.training] or found, set(evidence.spots(finding)))
        if needed is not None:
            return needed
    return _forwards(finding, found, evidence)


def _needed(found: list[ForwardFigures], spots: set[Spot]) -> Judgement | None:
    """Refuted, if a backward went through the graph of each forward that keeps something. One that is reached through
    a function has other callers, whose backward it may have been."""
    keeping = [forward for forward in found if forward.grad and forward.kept]
    own = all((real(forward.site.file), forward.site.line) in spots for forward in keeping)
    if not keeping or not own or any(f.dead or not f.visited for f in keeping if f.weights):
        return None
    if not any(forward.visited for forward in keeping):
        return None
    count = sum(forward.count for forward in found)
    text = f"ran {times(count)} with grad enabled, and a backward went through its graph"
    return Judgement("refuted", text, hits=count)


def _forwards(finding: Finding, found: list[ForwardFigures], evidence: Evidence) -> Judgement:
    figures = evidence.at(finding)
    if not found:
        if figures is not None and figures.hits:
            text = f"the line ran {times(figures.hits)}, but no module's forward was seen there"
            return Judgement("inconclusive", text)
        return unmeasured(finding, evidence) or Judgement(
            "inconclusive", "no module's forward was seen there"
        )
    evaluating = [forward for forward in found if not forward.training]
    found = evaluating or found  # a helper may serve training too
    with_grad = [forward for forward in found if forward.grad and forward.kept]
    count = sum(forward.count for forward in found)
    if with_grad:
        worst = max(with_grad, key=lambda forward: forward.kept or 0)
        kept = worst.kept or 0
        runs = sum(forward.count for forward in with_grad)
        mode = "eval" if not worst.training else "train"
        unused = ", and no backward went through its graph" if worst.dead and not worst.visited else ""
        text = (
            f"{worst.module} ran {times(runs)} with grad enabled, in {mode} mode{unused}: a call keeps "
            f"{'up to ' if runs > 1 else ''}{size(kept)} of activations"
        )
        piled = _confirmed_growth(text, grown_through(with_grad, evidence), evidence)
        return replace(piled or Judgement("confirmed", text), bytes=kept, hits=count)
    if any(forward.grad for forward in found):
        return Judgement(
            "refuted", f"ran {times(count)} with grad enabled, and kept no activations", hits=count
        )
    return Judgement("refuted", f"ran {times(count)}, with grad disabled", hits=count)


def grown_through(forwards: Iterable[ForwardFigures], evidence: Evidence) -> list[Holder]:
    """The growing holders that keep the graphs of these forwards: most of what they keep was born in the functions that run
    them."""
    functions = {
        (real(one.site.file), one.site.function)
        for one in forwards
        if one.grad and one.kept and not one.visited
    }
    return [
        holder
        for holder in evidence.rank.holders
        if (holder.through_graph or holder.nodes)
        and evidence.growth(holder)
        and 2 * sum(h.bytes for h in holder.births if (real(h.site.file), h.site.function) in functions)
        > holder.bytes
    ]


def _confirmed_growth(text: str, piled: list[Holder], evidence: Evidence) -> Judgement | None:
    """What forwards with grad enabled keep, where it grows from one to the next."""
    share = Share.of(evidence.growth(holder) for holder in piled)
    if not share:
        return None
    found = _confirmed_drift(share, piled, [], evidence)
    return replace(found, text=f"{text}; it grows: {found.text}")


def is_wasted(forward: ForwardFigures, evidence: Evidence) -> bool:
    """Whether a forward's graphs died again and again and no backward ever went through one. A module without
    parameters has its graph from what it is given, so it is not to blame."""
    if forward.visited or forward.dead < OFTEN or not forward.weights:
        return False
    peak = max((s.peak for s in evidence.rank.samples if s.peak is not None), default=0)
    return (forward.wasted or 0) >= max(NOTICED, peak * NOTICED_SHARE)


# -- peaks ---------------------------------------------------------------------------------------------------


def _late(finding: Finding, claim: Claim, evidence: Evidence) -> Judgement:
    figures = evidence.at(finding)
    sizes = (figures.tensors if figures is not None else None) or {}
    name = finding.subject if finding.subject in sizes else None
    loop = source.around(finding.filename, finding.line)
    if name is None or loop is None:
        return Judgement("inconclusive", "the size of the value was not measured")
    held = sizes[name]
    idle = source.idle_lines(loop, name, finding.line)
    levels = {line: _level(evidence, finding.filename, line) for line in loop.lines}
    top_idle = max((levels[line] for line in idle), default=0)
    top_used = max((level for line, level in levels.items() if line not in idle), default=0)
    if not top_idle:
        return Judgement("inconclusive", f"`{name}` is {size(held)}; memory after the line was not measured")
    where = max(idle, key=lambda line: levels[line])
    saving = max(0, top_idle - max(top_used, top_idle - held))
    if saving <= 0 or top_idle < TOP * max(levels.values()):
        text = (
            f"`{name}` ({size(held)}) is kept, but the peak of {size(top_used)} is reached while it is in use"
        )
        return Judgement("refuted", text, bytes=0)
    text = (
        f"`{name}` ({size(held)}) is still alive at the peak of {size(top_idle)}, on line {where}; "
        f"releasing it in time lowers the peak by up to {size(saving)}"
    )
    return Judgement("confirmed", text, bytes=saving, negligible=saving <= NEGLIGIBLE)


def _level(evidence: Evidence, file: str, line: int) -> int:
    figures = evidence.line(file, line)
    return figures.level or 0 if figures is not None else 0


def _deferred(finding: Finding, claim: Claim, evidence: Evidence) -> Judgement:
    figures = evidence.at(finding)
    hits = (figures.sampled_hits or 0) if figures is not None else 0
    per_step = hits / max(1, evidence.steps())
    kept = _kept_in_training(evidence)
    if per_step < 1.5:
        return Judgement("refuted", f"the line runs {per_step:.1f} times a step: there is nothing to defer")
    if not kept:
        return Judgement("inconclusive", "the activations of a forward were not measured")
    base = min((s.allocated for s in evidence.rank.samples if s.sampled and s.allocated), default=None)
    peak = max((s.peak for s in evidence.rank.samples if s.sampled and s.peak), default=None)
    saving = round(kept * (per_step - 1))
    if base is not None and peak is not None and peak - base < 0.7 * kept * per_step:
        rise = size(peak - base)
        return Judgement("refuted", f"the peak is only {rise} above the step's end: no batches pile up")
    text = (
        f"{per_step:.0f} micro-batches of {size(kept)} each are alive at the peak; "
        f"a backward for each lowers it by about {size(saving)}"
    )
    return Judgement("confirmed", text, bytes=saving)


def _kept_in_training(evidence: Evidence) -> int:
    return max((f.kept or 0 for f in evidence.rank.forwards if f.grad and f.training), default=0)


def _retained(finding: Finding, claim: Claim, evidence: Evidence) -> Judgement:
    problem = unmeasured(finding, evidence)
    if problem is not None:
        return problem
    figures = evidence.at(finding)
    kept = _kept_in_training(evidence)
    if figures is None or figures.growth is None or not kept:
        return Judgement("inconclusive", "what the backward frees was not measured")
    freed = max(0, -figures.growth)
    if freed > kept / 2:
        return Judgement("refuted", f"the backward freed {size(freed)} of activations all the same")
    text = f"the backward leaves up to {size(kept - freed)} of saved tensors allocated"
    return Judgement("confirmed", text, bytes=kept - freed)


def _cycle(finding: Finding, claim: Claim, evidence: Evidence) -> Judgement:
    """Growth, or garbage, or else what the backward leaves allocated until the gradients go."""
    found = _drift(finding, claim, evidence)
    return found if found.status == "confirmed" else _retained(finding, claim, evidence)


def _growth(finding: Finding, claim: Claim, evidence: Evidence) -> Judgement:
    if claim.device_only and not evidence.on_device:
        return cannot_tell(finding, evidence, "where the tensors land shows only on a machine with a GPU")
    figures = evidence.at(finding)
    if figures is None or not figures.hits:
        return unmeasured(finding, evidence) or Judgement("inconclusive", "the line was not watched")
    rise = max((b for b in (figures.early, figures.peak) if b is not None), default=None)
    if rise is None:
        return Judgement("inconclusive", "what the line allocates was not measured")
    ran = f"the line ran {times(figures.hits)}"
    if claim.kind == "alias":
        if rise == 0:
            text = f"{ran} and allocated nothing: what it keeps are the model's own tensors"
            return Judgement("confirmed", text, bytes=0, negligible=True)
        return Judgement("refuted", f"{ran} and allocated {size(rise)}: it makes a copy")
    if rise == 0:
        return Judgement("refuted", f"{ran} and allocated nothing")
    if figures.growth is not None and figures.growth > 0:
        return Judgement(
            "confirmed", f"the line leaves {size(figures.growth)} allocated", bytes=figures.growth
        )
    return Judgement("confirmed", f"{ran} and allocates {size(rise)} each time", bytes=rise)


def _useless(finding: Finding, claim: Claim, evidence: Evidence) -> Judgement:
    figures = evidence.at(finding)
    if figures is None or figures.growth is None:
        return Judgement("inconclusive", "what the line frees was not measured")
    if figures.growth < 0:
        return Judgement("refuted", f"the line frees {size(-figures.growth)}")
    return Judgement("confirmed", f"the line ran {times(figures.hits or 0)} and freed nothing", bytes=0)


def _handler(finding: Finding, claim: Claim, evidence: Evidence) -> Judgement:
    figures = evidence.at(finding)
    if figures is None or figures.hits is None:
        return Judgement("inconclusive", "whether the handler ran could not be counted")
    if not figures.hits:
        return Judgement("not reached", "no out-of-memory error was raised, so the handler did not run")
    at_rest = min((s.allocated for s in evidence.rank.samples if s.allocated is not None), default=None)
    text = f"the handler ran {times(figures.hits)}"
    held = None
    if figures.level is not None and at_rest is not None and figures.level > at_rest:
        held = figures.level - at_rest
        text += f", with {size(held)} more allocated than between steps"
    return Judgement("confirmed", text, bytes=held)


# -- time, settings, source ----------------------------------------------------------------------------------


def _time(finding: Finding, claim: Claim, evidence: Evidence) -> Judgement:
    calls = [call for call in evidence.calls(finding, claim.calls) if call.sampled]
    steps = evidence.steps()
    if not calls or not steps:
        return unmeasured(finding, evidence) or Judgement(
            "inconclusive", f"no call of {' or '.join(claim.calls)} was seen from the line"
        )
    return _timed(claim, evidence, calls, steps)


def _timed(claim: Claim, evidence: Evidence, calls: list[CallFigures], steps: int) -> Judgement:
    count, spent = sum(call.sampled for call in calls), sum(call.seconds for call in calls)
    per_step, step, work = spent / steps, evidence.step_seconds(), evidence.work_seconds()
    name = calls[0].what
    often = f"{name} ran {times(count)} in {evidence.steps_text()}"
    if claim.device_only and not evidence.on_device:
        return Judgement(
            "inconclusive", f"{often}; without a GPU it does nothing, so its cost was not measured"
        )
    freed = sum(call.freed or 0 for call in calls)
    if freed / count > NEGLIGIBLE:
        text = f"{often}, and freed {size(freed / count)} a call of tensors that wait in reference cycles"
        return Judgement("refuted", text, bytes=round(freed / count), seconds=per_step)
    share = per_step / step if step else 0.0
    text = f"{often}: {per_step * 1000:.2f} ms a step, {share:.0%} of its time"
    if any(call.freed is not None for call in calls):
        text += (
            ", and it freed nothing on the device"
            if freed <= 0
            else f", for {size(freed / count)} freed a call"
        )
    released = sum(call.released or 0 for call in calls)
    if released > 0:
        text += f"; it gave back {size(released / count)} a call, which the next step takes again"
    if not work or per_step < NOTABLE * work:
        return Judgement("refuted", f"{often}, and took {per_step * 1e6:.0f} µs a step", seconds=per_step)
    return Judgement("confirmed", text, seconds=per_step)


def _setting(finding: Finding, claim: Claim, evidence: Evidence) -> Judgement:
    if evidence.rank.end.refusal:
        return Judgement("confirmed", f"torch refused the setting: {evidence.rank.end.refusal}")
    figures = evidence.at(finding)
    if figures is not None and figures.hits == 0:
        return never_ran(evidence)
    settings = evidence.rank.environment.allocator
    if settings is None:
        why = "the allocator's settings can be read back only on a machine with a GPU"
        return cannot_tell(finding, evidence, why)
    in_force = {key for key, value in options(settings) if value not in _OFF}
    missing = [name for name in claim.options if name not in in_force]
    if missing:
        return Judgement("confirmed", f"the allocator runs without {', '.join(missing)}: {settings}")
    reserved, peak = evidence.rank.most_reserved, evidence.rank.peak
    if claim.fragments and reserved and peak is not None and peak.allocated:
        ratio = reserved / peak.allocated
        text = f"reserved is {ratio:.2f} times the peak of allocated ({size(reserved)} for {size(peak.allocated)})"
        if ratio > FRAGMENTED:
            return Judgement("confirmed", text)
        return Judgement("inconclusive", f"{text} in this run; what splits badly shows in longer ones")
    return Judgement("inconclusive", f"the allocator's settings are: {settings}")


def _code(finding: Finding, claim: Claim, evidence: Evidence) -> Judgement:
    return Judgement("inconclusive", "not measurable by a run: this is about how the code reads")


_MEASURED = (
    "late",
    "deferred",
    "useless",
)  # claims of which nothing is said unless the line ran in sampled steps
_JUDGES: Mapping[Kind, Callable[[Finding, Claim, Evidence], Judgement]] = {
    "drift": _drift,
    "cycle": _cycle,
    "forward": _forward,
    "guard": _forward,
    "late": _late,
    "deferred": _deferred,
    "retained": _retained,
    "handler": _handler,
    "time": _time,
    "growth": _growth,
    "transient": placing.transient,
    "gathered": placing.gathered,
    "transfer": placing.transfer,
    "garbage": placing.garbage,
    "context": placing.context,
    "alias": _growth,
    "useless": _useless,
    "setting": _setting,
    "code": _code,
}
