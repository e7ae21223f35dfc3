"""What a memory snapshot has in it, compactly: segments with their blocks, and the trace as columns of numbers; and which line of a
stack is the user's. A snapshot comes from another machine, so the paths alone must tell.

An event of the trace is some thirty bytes here, where the dictionaries of the pickle would be a thousand and more.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from typing import Any, Final, NamedTuple

from gpulint.allocator import Settings, parse_settings
from gpulint.allocator.settings import UNLIMITED

SETTINGS: Final = "PYTORCH_CUDA_ALLOC_CONF"  # what a snapshot calls the text of the allocator's settings
MOST_OF_A_CARD: Final = 1 << 44  # bytes; a size beyond is none


class Action(IntEnum):
    """What the allocator did, by torch's names for it."""

    ALLOC = 0
    FREE_REQUESTED = 1
    FREE_COMPLETED = 2
    SEGMENT_ALLOC = 3
    SEGMENT_FREE = 4
    SEGMENT_MAP = 5
    SEGMENT_UNMAP = 6
    OOM = 7
    SNAPSHOT = 8
    OTHER = 9


ACTIONS = {action.name.lower(): action for action in Action}
# What becomes of the bytes that are reserved, by action
RESERVES: Final[dict[int, int]] = {
    Action.SEGMENT_ALLOC: 1,
    Action.SEGMENT_MAP: 1,
    Action.SEGMENT_FREE: -1,
    Action.SEGMENT_UNMAP: -1,
}


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a stack. `original` are the lines of a model that a compiled line was made of, where torch was asked for them
    (`augment_with_fx_traces`), innermost first."""

    file: str
    line: int
    name: str
    original: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """Where an allocation comes from, innermost first. `number` is its place in `Recording.stacks`.

    `forward` where there was no Python at all, in a backward, and torch told the stack of the forward instead.
    """

    number: int
    frames: tuple[Frame, ...]
    forward: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a segment; sizes in bytes. `pending` is freed by the program and waits for another stream."""

    address: int
    size: int
    requested: int
    allocated: bool
    pending: bool
    stack: int

    @property
    def free(self) -> bool:
        return not self.allocated and not self.pending


@dataclass(frozen=True, slots=True)
class Segment:
    """What one `cudaMalloc` gave, or a mapped range of an expandable segment; sizes in bytes."""

    device: int
    address: int
    size: int
    stream: int
    small: bool
    pool: tuple[int, int]
    expandable: bool
    stack: int
    blocks: tuple[Block, ...]


@dataclass(slots=True)
class Trace:
    """The events of one device in the order in which they happened: one number a column for each. Of an OOM, `address` is what
    the driver had left, and `size` what was asked for."""

    action: array[int] = field(default_factory=lambda: array("B"))
    address: array[int] = field(default_factory=lambda: array("Q"))
    size: array[int] = field(default_factory=lambda: array("Q"))
    place: array[int] = field(default_factory=lambda: array("H"))  # number of its stream and pool
    stack: array[int] = field(default_factory=lambda: array("I"))
    time: array[int] = field(default_factory=lambda: array("q"))  # microseconds, or 0

    def __len__(self) -> int:
        return len(self.action)

    def extend(self, other: Trace) -> None:
        """Put the events of another behind."""
        for column in fields(self):
            getattr(self, column.name).extend(getattr(other, column.name))

    def __iter__(self) -> Iterator[tuple[int, int, int, int, int]]:
        """(action, address, size, place, stack) of each event."""
        return zip(self.action, self.address, self.size, self.place, self.stack, strict=True)


NOWHERE = Stack(0, ())


@dataclass(slots=True)
class Recording:
    """A snapshot that was read."""

    segments: list[Segment] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)
    stacks: list[Stack] = field(default_factory=lambda: [NOWHERE])
    places: list[tuple[int, tuple[int, int] | None]] = field(default_factory=list)  # stream, pool
    settings: dict[str, Any] = field(default_factory=dict)
    host: int = 0  # bytes of pinned host memory that the snapshot lists besides

    def devices(self) -> list[int]:
        """The devices that have memory or events."""
        used = {segment.device for segment in self.segments}
        return sorted(used | {number for number, trace in enumerate(self.traces) if len(trace)})

    def trace_of(self, device: int) -> Trace:
        return self.traces[device] if 0 <= device < len(self.traces) else Trace()


def settings_of(recording: Recording) -> tuple[Settings, str]:
    """The settings that were in force, and their text; the default's where the snapshot has none (torch before 2.2)."""
    given = recording.settings
    text = str(given.get(SETTINGS) or "")
    try:
        settings = parse_settings(text)
    except ValueError:
        settings = Settings()
    told: dict[str, Any] = {}
    if isinstance(most := given.get("max_split_size"), int):
        told["max_split"] = most if 0 < most < UNLIMITED else UNLIMITED
    if isinstance(expandable := given.get("expandable_segments"), bool):
        told["expandable"] = expandable
    if isinstance(threshold := given.get("garbage_collection_threshold"), float):
        told["gc_threshold"] = threshold
    if isinstance(divisions := given.get("roundup_power2_divisions"), dict):
        if [type(value) for value in divisions.values()] == [int] * 16:
            told["divisions"] = tuple(divisions.values())
    return replace(settings, **told), text


# -- whose lines -----------------------------------------------------------------------------------------------

# Python's own files, installed packages, compiled code, and what is no Python at all.
_LIBRARY: Final = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]"
    r"|[/\\]lib(?:64)?[/\\]python3(?:\.\d+)?[/\\]"
    r"|[/\\]Lib[/\\]\w+\.py$"
    r"|[/\\]torch[/\\](?:nn|optim|utils|autograd|cuda|_\w+|distributed|fx|jit|ao|_functorch|_inductor)[/\\]"
    r"|torchinductor_|[/\\]\.triton[/\\]|[/\\]gpulint[/\\]runtime[/\\]"
    r"|^<"
)
_PYTHON: Final = re.compile(r"\.py[wc]?$|^<|^/tmp/ipykernel|\[\d+\]$", re.IGNORECASE)
# What autograd calls a function's backward, in C++.
_NODE: Final = re.compile(r"autograd::(?:generated::)?(?P<node>\w*Backward\d*|AccumulateGrad)::apply\b")
_CELL: Final = re.compile(r"ipykernel_\d+|^<ipython-input|^<stdin>|^<string>")


class Line(NamedTuple):
    """Where bytes come from, for people: the user's lines, innermost first. `kind` says what stands there instead:
    "" for the user's own, "library" where no line of the user's is in the stack, "backward" where it is the forward's line of what a
    backward allocated, "node" for a backward without any Python of which C++ lines tell the function, "older" for what was allocated before the trace by nobody knows whom, and "unknown"."""

    frames: tuple[Frame, ...]
    kind: str = ""

    def __str__(self) -> str:
        return " < ".join(f"{one.file}:{one.line} {one.name}" for one in self.frames)


UNKNOWN: Final = Line((), "unknown")
BEFORE: Final = Line((), "older")


def is_users(frame: Frame) -> bool:
    """Whether a frame is of the program, not of Python, torch or another package."""
    if _CELL.search(frame.file):
        return True
    return bool(_PYTHON.search(frame.file)) and not _LIBRARY.search(frame.file)


def line_of(stack: Stack, depth: int = 1) -> Line:
    """The innermost `depth` lines of the user's; 0 stands for the whole stack."""
    # The model's own lines stand before the compiled ones that were made of them
    frames = tuple(one for frame in stack.frames for one in (*frame.original, frame))
    if not frames:
        return UNKNOWN
    kind = "backward" if stack.forward else ""
    if depth == 0:
        return Line(frames, kind)
    users = [frame for frame in frames if is_users(frame)][:depth]
    if users:
        return Line(tuple(users), kind)
    python = next((frame for frame in frames if _PYTHON.search(frame.file)), None)
    return Line((python,), "library") if python is not None else _node_of(frames)


def _node_of(frames: Sequence[Frame]) -> Line:
    for frame in frames:
        node = _NODE.search(frame.name)
        if node is not None:
            return Line((Frame("", 0, node["node"]),), "node")
    return UNKNOWN


class Lines(dict[int, Line]):
    """The line of every stack of a recording by its number, looked up once each."""

    def __init__(self, recording: Recording, depth: int = 1) -> None:
        self._stacks, self._depth = recording.stacks, depth

    def __missing__(self, stack: int) -> Line:
        self[stack] = line_of(self._stacks[stack], self._depth)
        return self[stack]
