"""The judges of claims about where things are put: casts, gathered outputs, moves, contexts, what waits in cycles."""

from __future__ import annotations

from gpulint.claims import Claim
from gpulint.findings import Finding
from gpulint.runtime.parent.evidence import Evidence
from gpulint.runtime.parent.judgement import (
    FEWEST,
    NEGLIGIBLE,
    NOTABLE,
    NOTICED,
    Judgement,
    cannot_tell,
    never_ran,
    size,
    times,
    unmeasured,
)
from gpulint.runtime.record.drift import theil_sen
from gpulint.runtime.record.result import MEASURED_HITS, said_steps

PASSING = 0.1  # of what a line takes: what it gives back at once of that is no accident of rounding


def transient(finding: Finding, claim: Claim, evidence: Evidence) -> Judgement:
    """Whether the line needs more memory than it leaves, or gives back what was there before it."""
    if claim.device_only and not evidence.on_device:
        return cannot_tell(finding, evidence, "where the weights are shows only on a machine with a GPU")
    figures = evidence.at(finding)
    if figures is None or not figures.hits:
        return unmeasured(finding, evidence) or Judgement("inconclusive", "the line was not watched")
    rise = figures.early if figures.left is not None else figures.peak
    left = figures.left if figures.left is not None else figures.growth
    if rise is None or left is None:
        return Judgement("inconclusive", "what the line allocates and leaves was not measured")
    ran = f"the line ran {times(figures.hits)}"
    if left < 0:
        text = f"{ran} and gave back {size(-left)}, which was there in a wide type until then"
        return Judgement("confirmed", text, bytes=-left, negligible=-left <= NEGLIGIBLE)
    if rise - left >= max(NOTICED, PASSING * rise):
        text = f"{ran} and took {size(rise)} for the {size(left)} that it left"
        return Judgement("confirmed", text, bytes=rise - left)
    return Judgement("refuted", f"{ran} and took no more than the {size(left)} that it left", bytes=0)


def gathered(finding: Finding, claim: Claim, evidence: Evidence) -> Judgement:
    """Whether memory grows while the program evaluates: batch after batch, as what is gathered does."""
    figures = evidence.at(finding)
    if figures is not None and figures.hits == 0:
        return never_ran(evidence)
    levels = [s.allocated for s in evidence.rank.samples if s.kind == "eval" and s.allocated is not None]
    if len(levels) < FEWEST:
        seen = said_steps({"train": 0, "eval": len(levels), "explicit": 0}) if levels else "no step"
        return Judgement(
            "inconclusive", f"{seen} of an evaluation was seen; let it evaluate sooner, or longer"
        )
    slope = theil_sen(levels)
    if slope > NEGLIGIBLE:
        text = f"{size(slope)} more on the GPU with each of {len(levels)} batches of the evaluation"
        if not evidence.on_device:
            text = text.replace("on the GPU", "of what would be on the GPU")
        return Judgement("confirmed", text, device=slope)
    return Judgement("refuted", f"nothing grew over {len(levels)} batches of the evaluation")


def transfer(finding: Finding, claim: Claim, evidence: Evidence) -> Judgement:
    """Whether the line, with the wait for the GPU that a copy is, takes a share of the step that matters."""
    if claim.device_only and not evidence.on_device:
        return cannot_tell(finding, evidence, "without a GPU nothing is copied and nothing waits")
    problem = unmeasured(finding, evidence)
    if problem is not None:
        return problem
    figures, work, steps = evidence.at(finding), evidence.work_seconds(), evidence.steps()
    if figures is None or figures.seconds is None or not figures.sampled_hits or not work:
        return Judgement("inconclusive", "how long the line takes was not measured")
    each = figures.seconds / min(figures.sampled_hits, MEASURED_HITS)
    per_step = each * figures.sampled_hits / steps
    text = f"the line ran {times(figures.sampled_hits)} in {evidence.steps_text()}: {per_step * 1000:.2f} ms a step"
    text += f", {per_step / work:.0%} of its time, with what the host waits for in it"
    status = "confirmed" if per_step >= NOTABLE * work else "refuted"
    return Judgement(status, text, seconds=per_step)  # type: ignore[arg-type]


def garbage(finding: Finding, claim: Claim, evidence: Evidence) -> Judgement:
    """Whether tensors wait in reference cycles, of whatever line."""
    waiting = [d for d in evidence.rank.drifts if d.status == "gc-garbage" and d.place == "device"]
    problem = unmeasured(finding, evidence) if not waiting else None
    if problem is not None and problem.status == "not reached":
        return problem
    if waiting:
        amount = sum(drift.bytes_per_step for drift in waiting)
        text = f"{size(amount)} a step wait in reference cycles, until gc.collect() frees them"
        return Judgement(
            "confirmed",
            text,
            device=amount,
            negligible=amount <= NEGLIGIBLE,
            born=tuple(d.site for d in waiting[:5]),
        )
    if evidence.steps() < FEWEST:
        return Judgement("inconclusive", f"only {evidence.steps_text()}: run more with --steps")
    return Judgement("refuted", f"no tensor waited in a reference cycle in {evidence.steps_text()}")


def context(finding: Finding, claim: Claim, evidence: Evidence) -> Judgement:
    """Whether this process has a context on a card that is not its own."""
    if claim.device_only and not evidence.on_device:
        return cannot_tell(finding, evidence, "contexts are there only on a machine with GPUs")
    figures, environment = evidence.at(finding), evidence.rank.environment
    if figures is not None and figures.hits == 0:
        return never_ran(evidence)
    if environment.card is None:
        return Judgement("inconclusive", "which card the process works on could not be read")
    foreign = [card for card in environment.contexts if card != environment.card]
    own = f"the process works on card {environment.card}"
    if foreign:
        cards = ", ".join(map(str, foreign))
        return Judgement("confirmed", f"{own} and has a context on card {cards} as well")
    if environment.card == 0 and evidence.rank.world_size == 1:
        return Judgement(
            "inconclusive",
            f"{own}, which is the one in use until one is chosen: several ranks have to be seen (--nproc-per-node)",
        )
    return Judgement("refuted", f"{own} and has a context nowhere else")
