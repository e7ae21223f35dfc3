"""The judges of claims about where things are put: casts, gathered outputs, moves, contexts, what waits in cycles."""

from __future__ import annotations

from gpulint.runtime.parent.judgement import (
    FEWEST,
    NEGLIGIBLE,
    NOTABLE,
    NOTICED,
    Case,
    Judgement,
    confirmed,
    inconclusive,
    refuted,
    size,
    times,
)
from gpulint.runtime.record.drift import theil_sen
from gpulint.runtime.record.result import MEASURED_HITS, said_steps

PASSING = 0.1  # of what a line takes: what it gives back at once of that is no accident of rounding


def transient(case: Case) -> Judgement:
    """Whether the line needs more memory than it leaves, or gives back what was there before it."""
    if case.claim.device_only and not case.evidence.on_device:
        return case.cannot_tell("where the weights are shows only on a machine with a GPU")
    problem, figures = case.uncounted(), case.figures
    if problem is not None:
        return problem
    rise, left = (figures.early, figures.left) if figures.left is not None else (figures.peak, figures.growth)
    if rise is None or left is None:
        return inconclusive("what the line allocates and leaves was not measured")
    if left < 0:
        text = f"{case.ran} and gave back {size(-left)}, which was there in a wide type until then"
        return confirmed(text, bytes=-left, negligible=-left <= NEGLIGIBLE)
    if rise - left >= max(NOTICED, PASSING * rise):
        text = f"{case.ran} and took {size(rise)} for the {size(left)} that it left"
        return confirmed(text, bytes=rise - left)
    return refuted(f"{case.ran} and took no more than the {size(left)} that it left", bytes=0)


def gathered(case: Case) -> Judgement:
    """Whether memory grows while the program evaluates: batch after batch, as what is gathered does."""
    never, evidence = case.never_ran(), case.evidence
    if never is not None:
        return never
    levels = [s.allocated for s in evidence.rank.samples if s.kind == "eval" and s.allocated is not None]
    if len(levels) < FEWEST:
        seen = said_steps({"eval": len(levels)}) if levels else "no step"
        return inconclusive(f"{seen} of an evaluation was seen; let it evaluate sooner, or longer")
    slope = theil_sen(levels)
    if slope > NEGLIGIBLE:
        where = "on the GPU" if evidence.on_device else "of what would be on the GPU"
        text = f"{size(slope)} more {where} with each of {len(levels)} batches of the evaluation"
        return confirmed(text, device=slope)
    return refuted(f"nothing grew over {len(levels)} batches of the evaluation")


def transfer(case: Case) -> Judgement:
    """Whether the line, with the wait for the GPU that a copy is, takes a share of the step that matters."""
    evidence, figures = case.evidence, case.figures
    if case.claim.device_only and not evidence.on_device:
        return case.cannot_tell("without a GPU nothing is copied and nothing waits")
    problem, work = case.unmeasured(), evidence.work_seconds()
    if problem is not None:
        return problem
    if figures.seconds is None or not figures.sampled_hits or not work:
        return inconclusive("how long the line takes was not measured")
    each = figures.seconds / min(figures.sampled_hits, MEASURED_HITS)
    per_step = each * figures.sampled_hits / evidence.rank.steps()
    text = f"the line ran {times(figures.sampled_hits)} in {evidence.steps_text()}: {per_step * 1000:.2f} ms a step"
    text += f", {per_step / work:.0%} of its time, with what the host waits for in it"
    judged = confirmed if per_step >= NOTABLE * work else refuted
    return judged(text, seconds=per_step)


def garbage(case: Case) -> Judgement:
    """Whether tensors wait in reference cycles, of whatever line."""
    evidence = case.evidence
    waiting = evidence.rank.garbage
    if waiting:
        amount, born = sum(drift.bytes_per_step for drift in waiting), tuple(d.site for d in waiting[:5])
        text = f"{size(amount)} a step wait in reference cycles, until gc.collect() frees them"
        return confirmed(text, device=amount, negligible=amount <= NEGLIGIBLE, born=born)
    never = case.never_ran()
    if never is not None:
        return never
    if evidence.rank.steps() < FEWEST:
        return inconclusive(f"only {evidence.steps_text()}: run more with --steps")
    return refuted(f"no tensor waited in a reference cycle in {evidence.steps_text()}")


def context(case: Case) -> Judgement:
    """Whether this process has a context on a card that is not its own."""
    if case.claim.device_only and not case.evidence.on_device:
        return case.cannot_tell("contexts are there only on a machine with GPUs")
    never, rank = case.never_ran(), case.evidence.rank
    if never is not None:
        return never
    card = rank.environment.card
    if card is None:
        return inconclusive("which card the process works on could not be read")
    foreign = [str(other) for other in rank.environment.contexts if other != card]
    own = f"the process works on card {card}"
    if foreign:
        return confirmed(f"{own} and has a context on card {', '.join(foreign)} as well")
    if card == 0 and rank.world_size == 1:
        seen = "several ranks have to be seen (--nproc-per-node)"
        return inconclusive(f"{own}, which is the one in use until one is chosen: {seen}")
    return refuted(f"{own} and has a context nowhere else")
