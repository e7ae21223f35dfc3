"""The memory of one rank over its steps, as a chart: for a page the whole run, for a terminal each kind of step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from gpulint.reports.document import Chart, Plot, Series, Tip, curve
from gpulint.runtime.parent.growth import Phase, phases
from gpulint.runtime.record.result import Part, RankResult, Sample
from gpulint.units import format_bytes

_SERIES: Final = {
    "allocated": "allocated at the step's end",
    "peak": "peak within the step",
    "reserved": "reserved",
}
_TOLD: Final = {**dict.fromkeys((*_SERIES, "host_tensors")), "rss": "host (RSS)"}
_EVENTS: Final = (("retries", "allocation retries"), ("ooms", "out-of-memory errors"))
_MOST_LABELS: Final = 6
_MOST_PARTS: Final = 25  # of a step, so that each has its own columns


def chart(rank: RankResult, title: str) -> Chart | None:
    """None where fewer than two samples know `allocated`."""
    samples = [sample for sample in rank.samples if sample.allocated is not None]
    last = len(samples) - 1
    if last < 1:
        return None
    by_time = rank.boundary == "none"
    what = "sample" if by_time else "step"
    events = [_events(*pair) for pair in zip([samples[0], *samples], samples, strict=False)]
    shown = dict.fromkeys(round(last * n / (_MOST_LABELS - 1)) for n in range(_MOST_LABELS))
    warm, evaluating = [not s.sampled for s in samples], [s.kind == "eval" for s in samples]
    shaded = ["grey: warm-up"] * any(warm) + ["tinted: evaluation"] * any(evaluating)
    return Chart(
        f"{title}: allocated {format_bytes(samples[0].allocated or 0)} at the first {what},"
        f" {format_bytes(samples[-1].allocated or 0)} at the last",
        tuple(_series(samples)),
        tuple((at / last, f"{samples[at].kind} {samples[at].step}") for at in shown),
        (*_bands(warm, "warmup"), *_bands(evaluating, "eval")),
        tuple((at / last, ", ".join(said)) for at, said in enumerate(events) if said),
        tips=tuple(
            Tip(at / last, sample.allocated or 0, (*_tip(sample, by_time), *said))
            for at, (sample, said) in enumerate(zip(samples, events, strict=True))
        ),
        note=", ".join(shaded),
        plots=tuple(plot for phase in phases(rank) for plot in _plots(phase, rank)),
        from_zero=False,
    )


def _tip(sample: Sample, by_time: bool) -> Iterator[str]:
    kind = sample.kind if sample.sampled else f"{sample.kind}, warm-up"
    yield f"after {sample.seconds:.1f} s" if by_time else f"step {sample.step} ({kind})"
    for figure, name in _TOLD.items():
        if (size := getattr(sample, figure)) is not None:
            yield f"{name or figure.replace('_', ' ')}: {format_bytes(size)}"
    if sample.parts:
        yield _parts_text(sample.parts)
    if not by_time:
        yield f"time: {sample.duration * 1000:.1f} ms"


def _events(before: Sample, now: Sample) -> list[str]:
    """What happened within a step: allocation retries, out-of-memory errors."""
    counts = ((getattr(now, name), getattr(before, name), what) for name, what in _EVENTS)
    known = ((after, earlier, what) for after, earlier, what in counts if None not in (after, earlier))
    return [f"{after - earlier} {what}" for after, earlier, what in known if after > earlier]


def _bands(inside: Sequence[bool], style: str) -> Iterator[tuple[float, float, str]]:
    """From half a step before the first to half a step after the last of each stretch."""
    last = len(inside) - 1
    for there, stretch in groupby(range(len(inside)), inside.__getitem__):
        if there:
            places = list(stretch)
            yield max(0.0, places[0] - 0.5) / last, min(last, places[-1] + 0.5) / last, style


def _series(samples: Sequence[Sample]) -> Iterator[Series]:
    """That of allocated goes up to the peak of each part of a step, and down to what is left at its end."""
    last = len(samples) - 1
    for figure, name in _SERIES.items():
        drawn = curve(figure, name, [getattr(s, figure) for s in samples], filled=figure == "allocated")
        if figure == "allocated" and any(sample.parts for sample in samples):
            points = (
                ((at - 1 + (number + 1) / len(heights)) / last, height)
                for at, sample in enumerate(samples)
                for heights in [_heights(sample)[0 if at else -1 :]]
                for number, height in enumerate(heights)
            )
            drawn = Series(figure, "allocated, through each backward", tuple(points), filled=True)
        if drawn.points:
            yield drawn


def _heights(sample: Sample) -> list[int]:
    return [size for part in sample.parts for size in (part.peak, part.allocated)] or [sample.allocated or 0]


def _plots(phase: Phase, rank: RankResult) -> Iterator[Plot]:
    """The steps of one kind where there is something to be seen; and the one with the highest peak, of those in which several
    backwards are."""
    samples = [sample for sample in rank.samples if sample.kind == phase.kind]
    allocated = [s.allocated for s in samples if s.allocated is not None]
    reserved = [s.reserved for s in samples if s.reserved is not None]
    if len({*allocated}) > 1 or len({*reserved}) > 1:
        yield Plot(allocated, reserved, f"{samples[0].step}", f"{phase.name} step {samples[-1].step}")
    parted = [sample for sample in samples if sample.sampled and sample.parts]
    if parted:
        step = max(parted, key=lambda sample: (sample.peak or 0, sample.step))
        shown = step.parts[-_MOST_PARTS:]
        of = f"the last {len(shown) - 1} of " if len(shown) < len(step.parts) else ""
        said = f"{phase.name} step {step.step}, through {of}{_parts_text(step.parts)}"
        yield Plot([size for part in shown for size in (part.peak, part.allocated)], first=said)


def _parts_text(parts: Sequence[Part]) -> str:
    """`4 backwards`: what parts a step, beside its end."""
    return f"{len(parts) - 1} backwards"
