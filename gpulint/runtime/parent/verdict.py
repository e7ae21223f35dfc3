"""Static findings × measurements → verdicts: confirmed, refuted, inconclusive, not reached; and what nobody
predicted, growth and forwards for nothing.

Pure functions on records. What is claimed stands on each finding; how measurements are found in `evidence`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gpulint.findings import Confidence, Finding, in_words
from gpulint.runtime.parent import growth, judging, standing
from gpulint.runtime.parent.evidence import Evidence, Share, over_ranks, real
from gpulint.runtime.parent.growth import account, harmless, phases, unexplained
from gpulint.runtime.parent.judgement import Judgement, Status, per, place, rate, size, times
from gpulint.runtime.parent.standing import HostGrowth, Idle, Tied
from gpulint.runtime.record.peaks import ForeignContext, Gate
from gpulint.runtime.record.records import Record
from gpulint.runtime.record.result import ForwardFigures, Holder, RunResult, Site, Trend

UNSETTLED = 3  # the exit status where it cannot be told whether growth ends
_ORDER: tuple[Status, ...] = ("confirmed", "inconclusive", "refuted", "not reached")
_What = tuple[str, str, str]  # which holder or site, the same on every rank
_FAILED = ("raised", "exit", "killed", "not-started", "no-steps", "no-torch", "no-device")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict(Judgement):
    """One finding, judged by all ranks. `ranks` are the ranks of this status where there are several. `doubts` are what the
    linter alone was not sure of."""

    code: str
    name: str
    message: str
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    ranks: tuple[int, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def proven(self) -> bool:
        """Whether the run says so as well, and it matters."""
        return self.status == "confirmed" and not self.negligible

    @property
    def headline(self) -> str:
        """The status, as it is printed."""
        return "confirmed, negligible on the GPU" if self.negligible else self.status

    @property
    def doubt(self) -> str:
        """The doubts as they are told to people."""
        return in_words(self.doubts, " without a run")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpredicted(Share):
    """Growth that no finding explains: by holder, or by birth site where no holder was found."""

    text: str
    file: str
    line: int
    born: tuple[Site, ...] = ()
    ranks: tuple[int, ...] = ()

    @property
    def rate(self) -> str:
        """`1.0 MiB an evaluation`: what stays on the device."""
        return rate(self)


@dataclass(frozen=True, slots=True)
class Wasted(Record):
    """A forward that no finding speaks of, run with grad enabled although no backward ever went through its graph.
    `count` calls ran, of which each kept `bytes` of activations; a cost, and no drift: they went with the graph."""

    text: str
    file: str
    line: int
    function: str
    module: str
    mode: Literal["eval", "train"]
    count: int
    bytes: int
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Verification(Record):
    """A run with its verdicts. `target` is the script or module; `max_drift` bytes per step on the GPU are
    allowed. `gate` is the run held against further limits, where there are any; `foreign` are contexts of ranks on the cards of others."""

    target: str
    run: RunResult
    verdicts: tuple[Verdict, ...] = ()
    unpredicted: tuple[Unpredicted, ...] = ()
    garbage: tuple[str, ...] = ()
    fragmentation: tuple[Trend, ...] = ()
    max_drift: int = 0
    wasted: tuple[Wasted, ...] = ()
    harmless: tuple[growth.Harmless, ...] = ()
    unexplained: tuple[growth.Unexplained, ...] = ()
    gate: Gate | None = None
    foreign: tuple[ForeignContext, ...] = ()
    rates: tuple[growth.Rate, ...] = ()

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU's memory was measured, not what would be on one."""
        return any(rank.environment.device == "cuda" for rank in self.run.ranks)

    @property
    def where(self) -> str:
        """Where the drift is, as it is said."""
        return "on the GPU" if self.on_gpu else "of what would be on the GPU"

    @property
    def phases(self) -> tuple[growth.Phase, ...]:
        """The steps of each rank by kind, with how its memory moved in them."""
        return tuple(phase for rank in self.run.ranks for phase in phases(rank))

    @property
    def drift(self) -> float:
        """Drift on the GPU, in bytes per step: all that grows by name, each site counted once however many findings speak of it, and
        what is unexplained."""
        return sum(one.device for one in self.rates)

    @property
    def said_drift(self) -> str:
        """`4.61 MiB a step and 3.00 MiB an evaluation`."""
        return " and ".join(f"{size(one.each)} {per(one.window)}" for one in self.rates) or "0 B a step"

    @property
    def idle(self) -> tuple[Idle, ...]:
        """Memory that was alive and that nothing touched."""
        return standing.idle(self.run)

    @property
    def tied(self) -> tuple[Tied, ...]:
        """Memory that waits in cycles for Python's collector."""
        return standing.tied(self.run)

    @property
    def host_growth(self) -> tuple[HostGrowth, ...]:
        """Host memory that grows in nothing that is named elsewhere, here and in the processes that the script starts."""
        named = [v.host or 0.0 for v in self.verdicts if v.status == "confirmed"]
        named += [u.host for u in self.unpredicted] + [h.host for h in self.harmless]
        return standing.host_growth(self.run, sum(named))

    @property
    def drifting(self) -> bool:
        """Whether something drifts by more than is allowed."""
        return self.drift > self.max_drift

    @property
    def unsettled(self) -> float:
        """Bytes a step that grew over all that was watched, by the rank that has most of it: that may be drift, and may come to an end."""
        return max((growth.unsettled(Evidence(rank)) for rank in self.run.ranks), default=0.0)

    @property
    def sampled(self) -> int:
        """The steps sampled of the kind that is judged first, by the rank that sampled most of them."""
        return max((rank.steps(Evidence(rank).main_kind()) for rank in self.run.ranks), default=0)

    @property
    def failed(self) -> bool:
        """Whether the script failed, or could not be run as far as it takes to judge it."""
        reason = self.run.end.reason
        if reason == "timeout":
            return not (self.drifting or (self.gate is not None and self.gate.exceeded))
        if self.run.end.out_of_memory and self.drifting:
            return False  # that is how it had to end
        return reason in _FAILED or reason == "interrupted" or not self.sampled or bool(self.unjudged)

    @property
    def unjudged(self) -> str:
        """Why steps that were sampled could not be judged; "" where they were, or where something drifts all the same."""
        why = (said for rank in self.run.ranks for said in rank.unjudged)
        return "" if self.drifting else next(why, "")

    @property
    def trouble(self) -> str:
        """Why it is not verified, where it `failed`."""
        return self.unjudged or self.run.end.message

    @property
    def exit_code(self) -> int:
        """0: no drift above `max_drift`, no limit exceeded; 1: drift, or a limit that was exceeded; 2: the script failed, nothing was
        sampled or judged, or it could not be held against its limits; 3: none of these, and growth by more than `max_drift` that is not
        settled; 130: interrupted."""
        if self.run.end.reason == "interrupted":
            return 130
        if self.failed or (self.gate is not None and self.gate.problems):
            return 2
        if self.drifting or (self.gate is not None and self.gate.exceeded):
            return 1
        return UNSETTLED if self.unsettled > self.max_drift else 0

    def count(self, status: Status) -> int:
        """How many findings have this status."""
        return sum(v.status == status for v in self.verdicts)


def verify(
    target: str,
    run: RunResult,
    findings: Iterable[Finding],
    max_drift: int = 0,
    least: Confidence = Confidence.LOW,
) -> Verification:
    """Judge every finding by every rank, and list what they leave unexplained. A finding below the confidence `least` counts
    for nothing unless it is proven."""
    # Asked for a GPU that there is not, or that is not used: what its probe has read means nothing.
    ranks = run.ranks if run.end.reason != "no-device" else ()
    evidence = [Evidence(rank) for rank in ranks if rank.environment.torch or rank.samples]
    judged = [(f, _weighed(_judge(f, evidence, run), max_drift)) for f in findings if not f.is_diagnostic]
    kept = [(f, found) for f, found in judged if f.confidence.reaches(least) or found.proven]
    claims = [finding for finding, _ in kept]
    fragmented = [t for one in evidence for t in one.rank.trends if t.status == "fragmentation"]
    found = Verification(
        target=target,
        run=run,
        verdicts=_sharing([found for _, found in kept]),
        unpredicted=tuple(_unpredicted(claims, evidence)),
        garbage=tuple(_garbage(evidence)),
        fragmentation=tuple(fragmented[:1]),
        max_drift=max_drift,
        wasted=tuple(_wasted([finding for finding, found in kept if found.status == "confirmed"], evidence)),
        harmless=harmless(claims, evidence),
        unexplained=unexplained(evidence),
        rates=account(evidence),
    )
    if not found.drifting:
        return found
    return replace(found, verdicts=tuple(_weighed(verdict, 0) for verdict in found.verdicts))


def _weighed(found: Verdict, max_drift: float) -> Verdict:
    """What makes the exit status is not negligible."""
    counts = found.negligible and (found.device or 0.0) > max_drift
    return replace(found, negligible=False) if counts else found


def _judge(finding: Finding, evidence: Sequence[Evidence], run: RunResult) -> Verdict:
    if not evidence:
        nothing = Judgement("inconclusive", f"nothing was measured: {run.end.message}")
        return _verdict(finding, nothing, ())
    judged = [(one.rank.rank, judging.judge(finding, one)) for one in evidence]
    best = min(judged, key=lambda pair: (_ORDER.index(pair[1].status), -(pair[1].device or 0.0), pair[0]))[1]
    ranks = tuple(rank for rank, one in judged if one.status == best.status)
    return _verdict(finding, best, ranks if len(judged) > 1 else ())


def _verdict(finding: Finding, found: Judgement, ranks: tuple[int, ...]) -> Verdict:
    text = found.text
    if ranks and found.status == "confirmed":
        text = f"on {_ranks(ranks)}: {text}"
    same = ("code", "name", "message", "line", "column", "end_line", "end_column", "doubts")
    told = {name: getattr(finding, name) for name in same}
    return Verdict(**{**found.by_name(), "text": text}, **told, file=real(finding.filename), ranks=ranks)


def _sharing(verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """The verdicts, where those on one line that mean the same holder say that its growth is one."""
    said = []
    for verdict in verdicts:
        growth_of = _growth_of(verdict)
        same = (one for one in verdicts if one is not verdict and _growth_of(one) == growth_of is not None)
        others = [f"{other.code} at column {other.column}" for other in same]
        text = f"{verdict.text}; the same growth as {' and '.join(others)}" if others else verdict.text
        said.append(replace(verdict, text=text))
    return tuple(said)


def _growth_of(verdict: Verdict) -> tuple[str, int, str, float | None, float | None] | None:
    """What makes two verdicts speak of the same memory; None where they speak of none."""
    if verdict.status != "confirmed" or not verdict.holder:
        return None
    return (verdict.file, verdict.line, verdict.holder, verdict.device, verdict.nodes)


def _ranks(ranks: tuple[int, ...]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"


# -- what no finding predicted -------------------------------------------------------------------------------


def _unpredicted(findings: Sequence[Finding], evidence: Sequence[Evidence]) -> list[Unpredicted]:
    seen = (
        (one.rank.rank, (found.file, found.line, what), found)
        for one in evidence
        for what, found in (*_holders_left(findings, one), *_sites_left(findings, one))
    )
    listed = over_ranks(seen, lambda u: (u.device, u.host), len(evidence) > 1)
    return sorted(listed, key=lambda u: (-u.device, -u.nodes, u.file, u.line))


def _holders_left(findings: Sequence[Finding], one: Evidence) -> list[tuple[_What, Unpredicted]]:
    """The growing holders that no finding means, by holder or by what was born on its line; one about forwards means those that
    keep their graphs."""
    drifting = [f for f in findings if f.runtime_claim.kind in ("drift", "cycle")]
    predicted = {id(holder) for finding in drifting for holder in one.holders(finding)}
    forwards = [forward for finding in findings for forward in judging.forwards_of(finding, one)]
    predicted |= {id(holder) for holder in judging.grown_through(forwards, one)}
    sites = {drift.site for finding in drifting for drift in one.born_at(finding)}
    left = []
    for holder in one.rank.holders:
        if id(holder) in predicted or (holder.births and all(held.site in sites for held in holder.births)):
            continue
        share = one.growth(holder)
        # Host memory of `.cpu()` copies is the script's business; the graph behind a holder is not.
        gathers = bool(share.window) and any(held.stretches > 1 for held in holder.births)
        if (holder.scope == "optimizer" and not gathers) or not (share.device > 0 or share.nodes > 0):
            continue
        left.append(((holder.container, holder.variable, holder.owner), _left(holder, share, one)))
    return left


def _left(holder: Holder, share: Share, one: Evidence) -> Unpredicted:
    # Autograd nodes cost host memory; how much is known only where the whole heap is seen to grow.
    host = one.heap_slope(one.kind_of(holder)) if share.nodes else None
    born = tuple(held.site for held in holder.births)[:5]
    grows = {**share.by_name(), "host": max(share.host, host or 0.0)}
    file = real(holder.file) if holder.file else ""
    return Unpredicted(**grows, text=one.text_of(holder), file=file, line=holder.line, born=born)


def _sites_left(findings: Sequence[Finding], one: Evidence) -> list[tuple[_What, Unpredicted]]:
    """Leaking sites of which most bytes have no holder at all; what waits in cycles is meant by a finding about these."""
    left = []
    of_cycles = any(finding.runtime_claim.kind in ("cycle", "garbage") for finding in findings)
    for drift in one.leaks():
        if of_cycles and drift.status == "gc-garbage":
            continue
        known = sum(size for size, _ in one.keepers(drift))
        missing = 1.0 - min(1.0, known / drift.total) if drift.total else 0.0
        if missing > 0.2:
            site = drift.site
            text = f"born in `{site.function}`, holder not found" if site.file else "holder not found"
            grows, file = Share.of_drift(drift, missing), real(site.file)
            found = Unpredicted(**grows.by_name(), text=text, file=file, line=site.line, born=(site,))
            left.append((("site", site.function, ""), found))
    return left


def _wasted(confirmed: Sequence[Finding], evidence: Sequence[Evidence]) -> list[Wasted]:
    """The forwards for nothing that no confirmed finding means already, the largest first."""
    seen = []
    for one in evidence:
        told = {f for finding in confirmed for f in judging.forwards_of(finding, one)}
        for forward in _forwards_for_nothing(one):
            if forward not in told:
                found = _wasted_forward(forward, one)
                seen.append((one.rank.rank, (found.file, found.line, found.module, found.mode), found))
    listed = over_ranks(seen, lambda w: w.bytes, len(evidence) > 1)
    return sorted(listed, key=lambda w: (-w.bytes, w.file, w.line))


def _forwards_for_nothing(one: Evidence) -> list[ForwardFigures]:
    """Without those inside a larger one, which will be put right with it."""
    found = [forward for forward in one.rank.forwards if judging.is_wasted(forward, one)]
    around = any(forward.training and not forward.inner for forward in found)
    return [forward for forward in found if not (forward.inner and around)]


def _wasted_forward(forward: ForwardFigures, one: Evidence) -> Wasted:
    mode: Literal["eval", "train"] = "train" if forward.training else "eval"
    kept = forward.wasted or 0
    followed = "" if forward.dead == forward.count else f" ({times(forward.dead)} followed to the end)"
    site = forward.site
    advice = "run it under `torch.no_grad()`"
    if any(other.visited and other.site == site for other in one.rank.forwards):
        only = "only where no backward follows does it belong under `torch.no_grad()`"
        advice = f"its line trains as well: {only}"
    ran = f"`{forward.module}` ran {times(forward.count)} with grad enabled in {mode} mode"
    call = (
        f"a call keeps {size(kept)} of activations for nothing{' (the median)' if forward.dead > 1 else ''}"
    )
    text = f"{ran}, and no backward went through it{followed}: {call}; {advice}"
    where = real(site.file), site.line, site.function
    return Wasted(text, *where, forward.module, mode, forward.count, kept)


def _garbage(evidence: Sequence[Evidence]) -> list[str]:
    """What only waits for the collector, in words."""
    waiting = [drift for one in evidence for drift in one.rank.garbage]
    said = (f"{size(d.bytes_per_step)} a step born at {place(d.site)} {d.reason}" for d in waiting)
    return list(dict.fromkeys(said))
