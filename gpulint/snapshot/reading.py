"""From the file that `torch.cuda.memory._dump_snapshot` wrote to a `Recording`.

Read since torch 2.1, and what torchtitan, Lightning and transformers dump, which is the same; also compressed with gzip. What
a dictionary is, its keys tell: a frame, a block, a segment, an event of a trace.
"""

from __future__ import annotations

import gzip
import os
import re
import sys
import zlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Final

from gpulint.snapshot.opcodes import NotPlainData, PlainUnpickler
from gpulint.snapshot.recording import (
    ACTIONS,
    MOST_OF_A_CARD,
    NOWHERE,
    SETTINGS,
    Action,
    Block,
    Frame,
    Recording,
    Segment,
    Stack,
    Trace,
)

_EVENT: Final = object()  # stands for a dictionary that went into the trace
_ANNOTATION: Final = object()  # stands for one that is not needed
_MOST_EVENTS: Final = 1 << 26  # thirty bytes each
_MOST_FRAMES: Final = 1 << 26  # of all stacks
_MOST_LINES: Final = 1 << 14  # in one traceback
_TEXT_FRAME: Final = re.compile(r'File "(?P<file>[^"]*)", line (?P<line>\d+), in (?P<name>\S+)')

# Files that people take for snapshots, by what they begin with
_TEXT: Final = "text; a snapshot is the pickle that"
_OTHERS: Final = {
    b"PK": "a zip file, as torch.save writes; a snapshot is what",
    **dict.fromkeys((b"{", b"[", b"<"), _TEXT),
}
# What the values of another layout end in.
_NOT_LAID_OUT: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

Progress = Callable[[int, int], None]  # bytes read, bytes in all


class NotASnapshot(ValueError):
    """The file is no memory snapshot, or not a whole one; the text is one sentence."""


def read(path: str | Path, progress: Progress | None = None) -> Recording:
    """The snapshot in a file; "-" is standard input. Raises NotASnapshot, and OSError where there is no such file."""
    opened: Any = nullcontext(sys.stdin.buffer) if str(path) == "-" else open(path, "rb")  # noqa: SIM115
    with opened as file:
        total = os.fstat(file.fileno()).st_size
        head = file.peek(4)[:4]
        if not head:
            raise NotASnapshot(f"{path} is empty")
        for beginning, what in _OTHERS.items():
            if head.startswith(beginning):
                raise NotASnapshot(f"{path} is {what} torch.cuda.memory._dump_snapshot writes")
        source: Any = gzip.GzipFile(fileobj=file) if head[:2] == b"\x1f\x8b" else file

        def tell(read: int) -> None:
            if progress is not None:
                progress(file.tell() if file.seekable() else read, total)

        try:
            return _Reader(source, tell).recorded()
        except NotPlainData as error:
            raise NotASnapshot(f"{path} is not a whole memory snapshot: {error}") from error
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise NotASnapshot(f"{path} cannot be unpacked: {error}") from error
        except _NOT_LAID_OUT as error:
            what = f"{type(error).__name__}: {error}"
            raise NotASnapshot(f"{path} is not laid out as torch's memory snapshots are ({what})") from error


class _Reader(PlainUnpickler):
    """Gathers the recording while the pickle is read."""

    def __init__(self, source: BinaryIO, tell: Callable[[int], None] | None = None) -> None:
        super().__init__(source, tell)
        self.recording = Recording()
        self._events = Trace()
        self._stacks: dict[tuple[Any, ...], Stack] = {}
        self._frames: dict[Frame, Frame] = {}
        self._places: dict[tuple[int, tuple[int, int] | None], int] = {}
        # Tracebacks of a forward, which each event has anew
        self._texts: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._forwards: dict[tuple[Any, ...], Stack] = {}
        self._framed = 0  # frames of all stacks
        self._left = _MOST_EVENTS

    # -- as the pickle goes on ---------------------------------------------------------------------------------

    def extended(self, items: list[Any], added: list[Any]) -> Any:
        first = added[0] if added else None
        if first is _EVENT:
            return self._of_trace(items)
        if isinstance(first, Frame):
            before = items.frames if isinstance(items, Stack) else ()
            return self._stack((*before, *added))
        if first is _ANNOTATION:
            return items
        if isinstance(first, str) and isinstance(items, (list, tuple)) and len(items) < _MOST_LINES:
            lines = (*items, *added)
            return self._texts.setdefault(lines, lines)
        return None

    def _of_trace(self, items: Any) -> Trace:
        """The trace that the list stands for, with the events that have waited in `_events` for it."""
        trace = items if isinstance(items, Trace) else Trace()
        trace.extend(self._events)
        self._events = Trace()
        return trace

    def dictionary(self, items: list[Any]) -> Any:
        given = dict(zip(items[::2], items[1::2], strict=True))
        if "action" in given and "size" in given:
            return self._event(given)
        if given.keys() >= {"filename", "line", "name"}:
            return self._frame(given)
        if given.keys() >= {"blocks", "total_size"}:
            return self._segment(given)
        if given.keys() >= {"state", "size"}:
            return self._block(given)
        return _ANNOTATION if given.keys() >= {"stage", "time_us"} else None

    def _event(self, given: dict[str, Any]) -> Any:
        trace = self._events
        self._left -= 1
        if self._left < 0:
            raise NotPlainData(f"it has more than {_MOST_EVENTS:,} events, which is more than is read")
        pool, stream = given.get("pool_id"), given.get("stream", 0)
        place = self._places.get((stream, pool))
        if place is None:
            place = self._places[stream, pool] = len(self._places)
            self.recording.places.append((stream, pool))
        stack = given.get("frames")
        if not stack and "forward_frames" in given:
            stack = self._forward(given["forward_frames"])
        trace.action.append(ACTIONS.get(given["action"], Action.OTHER))
        trace.address.append(given["addr"] if "addr" in given else given.get("device_free", 0))
        trace.size.append(given["size"])
        trace.place.append(place)
        trace.stack.append(_number(stack))
        trace.time.append(given.get("time_us", 0))
        return _EVENT

    # -- frames and segments -----------------------------------------------------------------------------------

    def _frame(self, given: dict[str, Any]) -> Frame:
        original = given.get("fx_original_trace")
        frame = Frame(
            _printable(given["filename"]),
            int(given["line"]),
            _printable(given["name"]),
            _frames_of_text(original.splitlines()) if isinstance(original, str) else (),
        )
        return self._frames.setdefault(frame, frame)

    def _stack(self, frames: tuple[Frame, ...], forward: bool = False) -> Stack:
        # Of frames that are interned, so the same wherever they are the same
        key = (forward, *map(id, frames))
        stack = self._stacks.get(key)
        if stack is None:
            self._framed += len(frames)
            if self._framed > _MOST_FRAMES:
                raise NotPlainData("its stacks are larger than a snapshot's")
            stack = self._stacks[key] = Stack(len(self.recording.stacks), frames, forward)
            self.recording.stacks.append(stack)
        return stack

    def _forward(self, lines: tuple[str, ...]) -> Stack:
        """The stack of the forward, for what a backward allocates."""
        stack = self._forwards.get(lines)
        if stack is None:
            frames = tuple(self._frames.setdefault(one, one) for one in _frames_of_text(lines))
            stack = self._forwards[lines] = self._stack(frames, forward=True) if frames else NOWHERE
        return stack

    def _segment(self, given: dict[str, Any]) -> Segment:
        pool = given.get("segment_pool_id", (0, 0))
        return Segment(
            device=int(given.get("device", 0)),
            address=int(given["address"]),
            size=_bytes(given["total_size"]),
            stream=int(given.get("stream", 0)),
            small=given.get("segment_type") == "small",
            pool=(int(pool[0]), int(pool[1])),
            expandable=bool(given.get("is_expandable", False)),
            stack=_number(given.get("frames")),
            blocks=_placed(given["blocks"], int(given["address"])),
        )

    def _block(self, given: dict[str, Any]) -> Block:
        history = given.get("history") or [{}]  # torch before 2.1
        stack = given.get("frames") or history[0].get("frames")
        if not stack and given.get("forward_frames"):
            stack = self._forward(given["forward_frames"])
        size, state = _bytes(given["size"]), given["state"]
        return Block(
            address=int(given.get("address", -1)),
            size=size,
            requested=int(given.get("requested_size", history[0].get("real_size", size))),
            allocated=state == "active_allocated",
            pending=str(state).startswith("active_") and state != "active_allocated",
            stack=_number(stack),
        )

    # -- the end -----------------------------------------------------------------------------------------------

    def recorded(self) -> Recording:
        """The recording that is in the file. Raises NotPlainData."""
        result = self.load()
        if isinstance(result, list) and all(isinstance(one, Segment) for one in result):
            result = {"segments": result}  # what torch.cuda.memory_snapshot() gives
        segments = result.get("segments") if isinstance(result, dict) else None
        if not isinstance(segments, list) or not all(isinstance(one, Segment) for one in segments):
            raise NotPlainData("it has no list of segments")
        recording = self.recording
        recording.segments = segments
        traces = result.get("device_traces", ())
        recording.traces = [one if isinstance(one, Trace) else Trace() for one in traces]
        settings = result.get("allocator_settings")
        recording.settings = dict(settings) if isinstance(settings, dict) else {}
        if SETTINGS in recording.settings:
            recording.settings[SETTINGS] = _printable(recording.settings[SETTINGS] or "")
        recording.host = sum(one.size for one in result.get("host_segments", ()) if isinstance(one, Segment))
        return recording


def _placed(blocks: Sequence[Block], address: int) -> tuple[Block, ...]:
    """The blocks of a segment, those before torch 2.1 told where they are as well."""
    found = []
    for block in blocks:
        found.append(replace(block, address=address) if block.address < 0 else block)
        address += block.size
    return tuple(found)


def _bytes(value: Any) -> int:
    """A size. Raises ValueError for what no card has."""
    size = int(value)
    if not 0 <= size <= MOST_OF_A_CARD:
        raise ValueError(f"{size} bytes")
    return size


def _printable(text: Any) -> str:
    """What may be shown: a name in somebody's file may have in it what a terminal obeys."""
    said = str(text)
    return said if said.isprintable() else ascii(said)[1:-1]


def _number(stack: Any) -> int:
    return stack.number if isinstance(stack, Stack) else 0


def _frames_of_text(lines: Sequence[str]) -> tuple[Frame, ...]:
    """The frames of a traceback as text, which has the innermost last."""
    found = [
        Frame(_printable(match["file"]), int(match["line"]), _printable(match["name"]))
        for line in lines
        if (match := _TEXT_FRAME.search(str(line)))
    ]
    return tuple(reversed(found))
