"""What the child process measured, as it crosses the process boundary: frozen dataclasses, written as JSON.

Sizes are bytes, times are seconds, lines count from 1. `None` means "not measured here", never zero.
Standard library only: the child runs in the user's interpreter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from gpulint.runtime.record.besides import Besides, Recording, WorkerContext
from gpulint.runtime.record.peaks import CardUse, StretchPeak, highest_of
from gpulint.runtime.record.records import Record
from gpulint.runtime.record.records import Site as Site
from gpulint.units import plural

SCHEMA = 1
MEASURED_HITS = 50  # of a line; more of them are only counted

StepKind = Literal["train", "eval", "explicit"]
Place = Literal["device", "host"]
Scope = Literal["local", "global", "attribute", "class attribute", "closure", "cache", "optimizer", "unknown"]
Boundary = Literal["optimizer", "forward", "batch", "explicit", "none"]
Status = Literal["leak", "filling", "unsettled", "occasional", "bounded", "gc-garbage"]
TrendStatus = Literal["flat", "growing", "shrinking", "fragmentation", "unknown"]
Figure = Literal["allocated", "reserved", "host_tensors", "rss", "heap"]
EndReason = Literal[
    "stopped",  # after the steps that were asked for
    "finished",  # the script ended by itself, after at least one step
    "no-steps",  # the script ended by itself and never stepped
    "no-torch",  # the script ended by itself and never imported torch
    "no-device",  # CUDA was asked for, and there is none, or the script did not use it
    "raised",  # the script raised; see `traceback`
    "exit",  # sys.exit with a code other than 0; see `code`
    "timeout",
    "interrupted",  # Ctrl-C, or the caller asked to stop
    "killed",  # by a signal, or os._exit; see `signal` and `code`
    "not-started",  # the interpreter, script, module or torchrun could not be started
]

ENDED_WELL: tuple[EndReason, ...] = ("stopped", "finished")

# What is noted of processes that were not, or not wholly, measured.
UNFOLLOWED = "starts Python itself: what runs there is not measured."
CUT_OFF = "The script ended this worker before it could report: of it only the steps are known."
LEFT_ALONE = "It failed after gpulint had stopped others that it works with: what was measured before stands."

KIND_NAMES: Mapping[StepKind, str] = {"train": "training", "eval": "evaluation", "explicit": "gpulint.step()"}

NO_TORCH = (
    "torch is not installed in {}: install it there (pip install torch), or name the interpreter that has it "
    "with --python"
)


# Why a GPU has to be there, where a limit asks for it and not the user.
LIMITED = "a limit is about the memory of a GPU"
INSTEAD = (
    "--device cpu holds it against the live tensors of a run on the CPU, as the allocator would round them"
)


def never_used_gpu(limited: bool) -> str:
    """The script left the GPU alone that it was to be measured on; `limited` as in `Options`."""
    if limited:
        return f"{LIMITED}, and the script never used one; {INSTEAD}"
    return "--device cuda was asked for, and the script never used the GPU"


@dataclass(frozen=True, slots=True)
class Environment(Record):
    """Where the figures come from. `date` is ISO 8601 in UTC, `allocator` the allocator's settings as read
    back. `card` is the number of the GPU that is current, `contexts` are those on which the process has a context."""

    python: str
    executable: str
    platform: str
    date: str
    torch: str | None = None
    device: Literal["cuda", "cpu"] = "cpu"
    device_name: str | None = None
    cuda: str | None = None
    driver: str | None = None
    probe: Literal["cuda-allocator", "host-storages", "none"] = "none"
    allocator: str | None = None
    allocator_backend: str | None = None
    card: int | None = None
    contexts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Part(Record):
    """A part of a step, in bytes: the highest `allocated` within it, and what is at its end."""

    peak: int
    allocated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures(Record):
    """One reading of the device's and the host's memory, in bytes; None where that cannot be known. `peak` counts from the reading before,
    `rss` is the process's resident memory, `heap` what malloc has handed out apart from tensors."""

    allocated: int | None = None
    reserved: int | None = None
    active: int | None = None
    inactive_split: int | None = None
    retries: int | None = None
    ooms: int | None = None
    peak: int | None = None
    host_tensors: int | None = None
    rss: int | None = None
    heap: int | None = None


@dataclass(frozen=True, slots=True)
class Sample(Figures):
    """The state at the end of one step.

    `step` counts from 1 within its `kind`; `sampled` is False for warm-up. `seconds` counts from the run's
    start, `duration` is this step's own time. `peak` is the highest `allocated` within the step. On the CPU `allocated` is
    what would be on the GPU: live storages, rounded as the caching allocator rounds; `host_tensors` are the
    others (batches, `.cpu()`). `parts` are there where several backwards are in the step, as those of the micro-batches
    whose gradients are accumulated: one up to the end of each backward, and what comes after the last.
    """

    step: int
    kind: StepKind
    sampled: bool
    seconds: float
    duration: float
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Drift(Record):
    """What one birth site left behind over the sampled steps of one kind.

    `bytes_per_step` is averaged over the steps that could be judged (`steps`), `share` is the part of them
    that left something behind, `slope` the Theil-Sen slope of the site's live bytes per step. `total` bytes
    in `count` blocks, from `events` stretches, are alive at the end. Status: *leak* grows in every step or at regular intervals;
    *filling* grows as far as it was watched, and what keeps it is held to a size that it has not reached;
    *unsettled* grows over all that was watched, without regularity; *occasional* survives without regularity; *bounded* is kept by something with a limit (deque, lru_cache,
    optimizer state) or stopped growing; *gc-garbage* was freed by `gc.collect()`. `limited` says
    that what keeps it has a most number of entries, and `reason` which. `enlarged`: nothing survived, but what is in use is
    replaced by something larger each time. It grew until the end of a window, of the name `released`, and was let go of then; or it has
    `outlived` so few of them that nothing is said. What was born in warm-up is not listed.

    `times` is the last of an `enlarged` site's levels as a multiple of the first.

    Where it was judged from end to end of `windows` larger windows, `window` is their name (`evaluation`, "call of `trial()`") and
    `per_window` the bytes that one leaves behind; `bytes_per_step` is spread over their steps then.
    """

    site: Site
    kind: StepKind
    place: Place
    status: Status
    bytes_per_step: float
    share: float
    steps: int
    total: int
    count: int
    slope: float | None = None
    reason: str = ""
    limited: bool = False
    enlarged: bool = False
    released: str = ""
    outlived: int = 0
    events: int = 0
    window: str = ""
    windows: int = 0
    per_window: float = 0.0
    times: float = 0.0


@dataclass(frozen=True, slots=True)
class WindowFigures(Record):
    """A kind of window that the run went through `seen` times: an evaluation, a pass over a DataLoader, rounds of a loop, calls of a
    function, or what the user has named. `levels` is `allocated` at the end of each but that with which the script ended, and `seconds` when that was; `judged` whether what outlives
    one was looked for, and `kept` the bytes of earlier ones that were there when the last one ended. `is_open`: the run was ended in
    one of them, before there were enough to tell growth."""

    name: str
    site: Site
    seen: int
    levels: tuple[int, ...] = ()
    seconds: tuple[float, ...] = ()
    judged: bool = False
    kept: int = 0
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Held(Record):
    """Part of what a holder keeps: `count` blocks born at `site`, in so many `stretches` of the window (0 where that is not
    known)."""

    site: Site
    count: int
    bytes: int
    stretches: int = 0


@dataclass(frozen=True, slots=True)
class Holder(Record):
    """Who keeps survivors alive.

    `text` is the sentence part for people: "list `losses` in `train()`, train.py:42, 16 tensors". `variable`
    is the expression (`losses`, `self.history`, `cache[...]`), `container` the kind of object (list, dict,
    deque, tensor, closure, lru_cache, exception, ...), `owner` the function, class or module it belongs to.
    `line` is the statement that puts things into it (or binds it) where one was found, `lines` all such
    statements in `file`. `count` tensors in it keep `bytes` of survivors alive. `through_graph` says that the
    bytes hang on the autograd graph of what is held. `nodes` counts autograd nodes of earlier steps: they
    cost host memory even if backward freed their tensors. `bound` is the most entries it can have (deque,
    lru_cache), `length` how many it has now, `entry` the bytes of the
    middle one of those that keep any (0 where they cannot be told apart). `pins` says what its entries keep besides values, `renews` that new values of
    the variable are made of the old ones. `released`, as in `Drift`: all of it was let go of. `limit` says which line of the script's holds
    it to a size, and to which. `slots`: each of its entries keeps one tensor of a kind, as an attribute; `refilled`: its keys come again, with new values.
    """

    text: str
    variable: str
    container: str
    scope: Scope
    owner: str
    file: str
    line: int
    count: int
    bytes: int
    lines: tuple[int, ...] = ()
    place: Place = "device"
    through_graph: bool = False
    nodes: int = 0
    bound: int | None = None
    length: int | None = None
    births: tuple[Held, ...] = ()
    entry: int = 0
    pins: Literal["", "graph", "network"] = ""
    renews: bool = False
    released: str = ""
    limit: str = ""
    slots: bool = False
    refilled: bool = False

    def kept_of(self, site: Site) -> int:
        """The bytes that it keeps of what was born at a site."""
        return sum(held.bytes for held in self.births if held.site == site)


@dataclass(frozen=True, slots=True)
class Trend(Record):
    """How one figure of the samples moved over the sampled steps of one kind; `slope` is bytes per step."""

    figure: Figure
    kind: StepKind
    status: TrendStatus
    slope: float
    first: int
    last: int
    steps: int
    reason: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True)
class LineFigures(Record):
    """What a place of interest did: a line, or with a `column` the statement or expression that begins there.

    `hits` counts over the whole run, `sampled_hits` after warm-up, both None where counting was not possible;
    `judged_hits` are the steps with a hit in which growth would have been seen.
    `seconds` is the time from this line to the next line of the same frame, over all measured hits; `growth`
    the largest net change of `allocated` over one such stretch, `peak` the largest rise of `allocated` within
    it (None where not measured). `level` is the highest `allocated` seen in the line, `tensors` maps the
    frame's local names to the bytes of their storages when the line was reached in a sampled step. `early` is
    the largest rise of `allocated` within the line before sampling began, `left` the net change of that run of it.
    """

    file: str
    line: int
    hits: int | None
    sampled_hits: int | None = None
    seconds: float | None = None
    growth: int | None = None
    peak: int | None = None
    tensors: dict[str, int] | None = None
    level: int | None = None
    early: int | None = None
    column: int = 0
    judged_hits: int | None = None
    left: int | None = None


@dataclass(frozen=True, slots=True)
class CallFigures(Record):
    """Calls of one function from one place: `what` is `torch.cuda.empty_cache`, `torch.cuda.synchronize`,
    `torch.save`, `gc.collect`, `Tensor.item`, `Tensor.tolist` or `Tensor.cpu`. `sampled` counts the calls after warm-up,
    `seconds` the time spent in those; `released` is how much `reserved` (None without CUDA) fell over
    them, `freed` how much `allocated` did (of `gc.collect` alone)."""

    what: str
    site: Site
    count: int
    sampled: int
    seconds: float
    released: int | None = None
    freed: int | None = None


@dataclass(frozen=True, slots=True)
class ForwardFigures(Record):
    """Calls of an outermost module (or of one in eval mode inside one in train mode) from one place.

    `grad` says whether outputs had a grad_fn. `kept` is the most that one call left allocated beyond its
    outputs: saved activations. `output` is the size of the outputs of that call. `seconds` is the host time
    of all calls. Some calls were followed: through the graphs of `visited` of them a backward went, those of
    `dead` died without one, and of these each kept `wasted` (the median). `weights` says that the module has
    parameters, `inner` that it ran inside another.
    """

    site: Site
    module: str
    training: bool
    grad: bool
    count: int
    kept: int | None
    output: int
    seconds: float
    visited: int = 0
    dead: int = 0
    wasted: int | None = None
    weights: bool = True
    inner: bool = False


@dataclass(frozen=True, slots=True)
class End(Record):
    """How the run ended. `message` is one line for people; `where` is the user's line that was running
    then. `asked`: the script asked for input that there was none of. `refusal` is what torch said of an allocator setting
    that it does not take. `out_of_memory`: what the script raised was that."""

    reason: EndReason
    message: str
    traceback: str | None = None
    code: int | None = None
    signal: int | None = None
    where: Site | None = None
    asked: bool = False
    refusal: str = ""
    out_of_memory: bool = False


@dataclass(frozen=True, slots=True)
class RankResult(Record):
    """Everything one process measured. `boundary` says what marked its steps; `recording` is what a trial compares.

    `peaks` are those of the stretches of the run, in no order. `cards` are those that the process sees, `pid` is its number there,
    and `first_use` the line that used CUDA first (None without CUDA). `unjudged` says why looks at steps failed.

    A worker that the script started with `multiprocessing` has a number for each generation in `process`, as that counts
    them: (2,) is the second process that the script's own process started."""

    rank: int
    world_size: int
    environment: Environment
    end: End
    boundary: Boundary = "none"
    warmup: int = 0
    samples: tuple[Sample, ...] = ()
    drifts: tuple[Drift, ...] = ()
    holders: tuple[Holder, ...] = ()
    trends: tuple[Trend, ...] = ()
    lines: tuple[LineFigures, ...] = ()
    calls: tuple[CallFigures, ...] = ()
    forwards: tuple[ForwardFigures, ...] = ()
    notes: tuple[str, ...] = ()
    recording: Recording | None = None
    process: tuple[int, ...] = ()
    peaks: tuple[StretchPeak, ...] = ()
    cards: tuple[CardUse, ...] = ()
    first_use: Site | None = None
    pid: int = 0
    besides: Besides = field(default_factory=Besides)
    windows: tuple[WindowFigures, ...] = ()
    unjudged: tuple[str, ...] = ()
    schema: int = SCHEMA

    @property
    def peak(self) -> StretchPeak | None:
        """The highest point of the whole run."""
        return highest_of(self.peaks)

    @property
    def most_reserved(self) -> int | None:
        """The most that torch's allocator had of the card at any point of the run; None without CUDA."""
        return max((peak.reserved for peak in self.peaks if peak.reserved is not None), default=None)

    def steps(self, kind: StepKind | None = None) -> int:
        """How many steps were sampled, warm-up not counted."""
        return sum(s.sampled and kind in (None, s.kind) for s in self.samples)

    @property
    def garbage(self) -> list[Drift]:
        """What on the device only waits for Python's collector."""
        return [d for d in self.drifts if d.status == "gc-garbage" and d.place == "device"]

    def leaks(self, place: Place = "device") -> tuple[Drift, ...]:
        """The birth sites that leak, largest first; those of reference cycles among them where nothing collects these."""
        statuses = ("leak", "gc-garbage") if self.besides.collections.off else ("leak",)
        found = [d for d in self.drifts if d.status in statuses and d.place == place]
        return tuple(sorted(found, key=lambda d: -d.bytes_per_step))


@dataclass(frozen=True, slots=True)
class RunResult(Record):
    """A whole run: one result per rank, in rank order, and how the run as a whole ended.

    Without torchrun there is one rank, or one for each worker that trains, numbered in the order in which they were made; the
    script's own process then is one of them if it trains as well, and the first. `ranks` holds only processes that
    reported, `others` those that took no step beside workers that did. `contexts` are those on the GPU that a DataLoader's workers made. `stdout` and `stderr` are set where output was captured
    (their last megabyte).
    """

    command: tuple[str, ...]
    end: End
    seconds: float
    ranks: tuple[RankResult, ...] = ()
    stdout: str | None = None
    stderr: str | None = None
    others: tuple[RankResult, ...] = ()
    contexts: tuple[WorkerContext, ...] = ()
    schema: int = SCHEMA

    @property
    def highest(self) -> tuple[int, StretchPeak] | None:
        """The peak of the run, and the rank that has it, the first of equals; None where none is known."""
        known = [(rank.rank, rank.peak) for rank in self.ranks if rank.peak is not None]
        return max(known, key=lambda one: (one[1].allocated, -one[0]), default=None)


@dataclass(frozen=True, slots=True)
class Progress(Record):
    """Sent to the parent at every step boundary. `drift` is allocated now minus allocated when warm-up ended."""

    rank: int
    sample: Sample
    wanted: int
    drift: int | None = None


def count_steps(samples: Iterable[Sample], sampled: bool = False) -> dict[StepKind, int]:
    """How many steps of each kind there are; with `sampled`, warm-up not counted."""
    counts = dict.fromkeys(KIND_NAMES, 0)
    for sample in samples:
        counts[sample.kind] += sample.sampled or not sampled
    return counts


def said_steps(counts: Mapping[StepKind, int]) -> str:
    """`6 steps`; where there are several kinds, `20 training and 12 evaluation steps`."""
    some = {kind: number for kind, number in counts.items() if number}
    if len(some) < 2:
        return plural(sum(some.values()), "step")
    each = [f"{some[kind]} {name}" for kind, name in KIND_NAMES.items() if kind in some]
    return f"{', '.join(each[:-1])} and {each[-1]} steps"
