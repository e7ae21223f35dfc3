"""Which line of a stack is the user's. A snapshot comes from another machine, so the paths alone must tell."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from gpulint.snapshot.recording import Frame, Recording, Stack

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
    frames = tuple(_with_originals(stack.frames))
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


def _with_originals(frames: Iterable[Frame]) -> Iterable[Frame]:
    """The frames, with the model's own lines before the compiled ones that were made of them."""
    for frame in frames:
        yield from frame.original
        yield frame


class Lines:
    """The line of every stack of a recording, looked up once each."""

    def __init__(self, recording: Recording, depth: int = 1) -> None:
        self._stacks: Sequence[Stack] = recording.stacks
        self._depth = depth
        self._found: dict[int, Line] = {}

    def __getitem__(self, stack: int) -> Line:
        line = self._found.get(stack)
        if line is None:
            line = self._found[stack] = line_of(self._stacks[stack], self._depth)
        return line
