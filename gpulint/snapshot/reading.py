"""From the file that `torch.cuda.memory._dump_snapshot` wrote to a `Recording`.

Read since torch 2.1, and what torchtitan, Lightning and transformers dump, which is the same; also compressed with gzip. What
a dictionary is, its keys tell: a frame, a block, a segment, an event of a trace.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from gpulint.snapshot.memo import NotPlainData
from gpulint.snapshot.opcodes import Machine
from gpulint.snapshot.recording import (
    ACTIONS,
    NOWHERE,
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
_TEXT_FRAME: Final = re.compile(r'File "(?P<file>[^"]*)", line (?P<line>\d+), in (?P<name>\S+)')

Progress = Callable[[int, int], None]  # bytes read, bytes in all


class NotASnapshot(ValueError):
    """The file is no memory snapshot, or not a whole one; the text is one sentence."""


def read(path: str | Path, progress: Progress | None = None) -> Recording:
    """The snapshot in a file. Raises NotASnapshot, and OSError where there is no such file."""
    reader = _Reader()
    total = Path(path).stat().st_size
    with open(path, "rb") as file:
        head = file.peek(4)[:4]
        if not head:
            raise NotASnapshot(f"{path} is empty")
        _refuse_others(path, head)
        packed = head[:2] == b"\x1f\x8b"
        source: Any = gzip.GzipFile(fileobj=file) if packed else file
        tell = None if progress is None else _telling(progress, file, total)
        try:
            result = Machine(source, reader, tell).load()
            return reader.finish(result)
        except NotPlainData as error:
            raise NotASnapshot(f"{path} is not a whole memory snapshot: {error}") from error
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise NotASnapshot(f"{path} cannot be unpacked: {error}") from error
        except (OverflowError, TypeError, KeyError, ValueError) as error:
            raise NotASnapshot(
                f"{path} is not laid out as torch's memory snapshots are ({type(error).__name__}: {error})"
            ) from error


def _refuse_others(path: str | Path, head: bytes) -> None:
    """Say what files are that people take for snapshots."""
    if head[:2] == b"PK":
        raise NotASnapshot(
            f"{path} is a zip file, as torch.save writes; a snapshot is what torch.cuda.memory._dump_snapshot writes"
        )
    if head[:1] in b"{[<":
        raise NotASnapshot(
            f"{path} is text; a snapshot is the pickle that torch.cuda.memory._dump_snapshot writes"
        )


def _telling(progress: Progress, file: BinaryIO, total: int) -> Callable[[int], None]:
    return lambda read: progress(file.tell() if file.seekable() else read, total)


class _Shape(NamedTuple):
    """Where in an event's items its values stand; -1 where it has no such key."""

    action: int
    address: int
    size: int
    stream: int
    time: int
    frames: int
    pool: int
    forward: int


class _Reader:
    """Gathers the recording while the pickle is read."""

    def __init__(self) -> None:
        self.recording = Recording()
        self._events = Trace()
        self._stacks: dict[tuple[Any, ...], Stack] = {}
        self._frames: dict[Frame, Frame] = {}
        self._shapes: dict[tuple[Any, ...], _Shape | None] = {}  # by the keys; None for what is no event
        self._places: dict[tuple[int, tuple[int, int] | None], int] = {}

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
        return None

    def _of_trace(self, items: Any) -> Trace:
        """The trace that the list stands for, with the events that have waited in `_events` for it."""
        trace = items if isinstance(items, Trace) else Trace()
        trace.extend(self._events)
        self._events = Trace()
        return trace

    def dictionary(self, items: list[Any]) -> Any:
        keys = tuple(items[::2])
        if keys not in self._shapes:
            self._shapes[keys] = _shape_of(keys)
        shape = self._shapes[keys]
        if shape is not None:
            return self._event(shape, items)
        if "filename" in keys and "line" in keys and "name" in keys:
            return self._frame(dict(zip(keys, items[1::2], strict=True)))
        if "blocks" in keys and "total_size" in keys:
            return self._segment(dict(zip(keys, items[1::2], strict=True)))
        if "stage" in keys and "time_us" in keys:
            return _ANNOTATION
        return None

    def _event(self, shape: _Shape, items: list[Any]) -> Any:
        trace = self._events
        pool = items[shape.pool] if shape.pool >= 0 else None
        stream = items[shape.stream] if shape.stream >= 0 else 0
        place = self._places.get((stream, pool))
        if place is None:
            place = self._places[stream, pool] = len(self._places)
            self.recording.places.append((stream, pool))
        stack = items[shape.frames] if shape.frames >= 0 else None
        if not stack and shape.forward >= 0:
            stack = self._forward(items[shape.forward])
        trace.action.append(ACTIONS.get(items[shape.action], Action.OTHER))
        trace.address.append(items[shape.address] if shape.address >= 0 else 0)
        trace.size.append(items[shape.size])
        trace.place.append(place)
        trace.stack.append(stack.number if isinstance(stack, Stack) else 0)
        trace.time.append(items[shape.time] if shape.time >= 0 else 0)
        return _EVENT

    # -- frames and segments -----------------------------------------------------------------------------------

    def _frame(self, given: dict[str, Any]) -> Frame:
        original = given.get("fx_original_trace")
        frame = Frame(
            str(given["filename"]),
            int(given["line"]),
            str(given["name"]),
            _frames_of_text(original.splitlines()) if isinstance(original, str) else (),
        )
        return self._frames.setdefault(frame, frame)

    def _stack(self, frames: tuple[Frame, ...], forward: bool = False) -> Stack:
        key = (
            forward,
            *map(id, frames),
        )  # of frames that are interned, so the same wherever they are the same
        stack = self._stacks.get(key)
        if stack is None:
            stack = self._stacks[key] = Stack(len(self.recording.stacks), frames, forward)
            self.recording.stacks.append(stack)
        return stack

    def _forward(self, lines: Sequence[str]) -> Stack:
        """The stack of the forward, for what a backward allocates."""
        frames = tuple(self._frames.setdefault(one, one) for one in _frames_of_text(lines))
        return self._stack(frames, forward=True) if frames else NOWHERE

    def _segment(self, given: dict[str, Any]) -> Segment:
        address = int(given["address"])
        blocks = []
        for one in given["blocks"]:
            blocks.append(self._block(one, address))
            address += blocks[-1].size
        pool = given.get("segment_pool_id", (0, 0))
        return Segment(
            device=int(given.get("device", 0)),
            address=int(given["address"]),
            size=int(given["total_size"]),
            stream=int(given.get("stream", 0)),
            small=given.get("segment_type") == "small",
            pool=(int(pool[0]), int(pool[1])),
            expandable=bool(given.get("is_expandable", False)),
            stack=_number(given.get("frames")),
            blocks=tuple(blocks),
        )

    def _block(self, given: dict[str, Any], address: int) -> Block:
        history = given.get("history") or [{}]  # torch before 2.1
        stack = given.get("frames") or history[0].get("frames")
        if not stack and given.get("forward_frames"):
            stack = self._forward(given["forward_frames"])
        size, state = int(given["size"]), given["state"]
        return Block(
            address=int(given.get("address", address)),
            size=size,
            requested=int(given.get("requested_size", history[0].get("real_size", size))),
            allocated=state == "active_allocated",
            pending=str(state).startswith("active_") and state != "active_allocated",
            stack=_number(stack),
        )

    # -- the end -----------------------------------------------------------------------------------------------

    def finish(self, result: Any) -> Recording:
        """The recording, of what stands for the whole file. Raises NotASnapshot."""
        if isinstance(result, list) and all(isinstance(one, Segment) for one in result):
            result = {"segments": result}  # what torch.cuda.memory_snapshot() gives
        segments = result.get("segments") if isinstance(result, dict) else None
        if not isinstance(segments, list) or not all(isinstance(one, Segment) for one in segments):
            raise NotPlainData("it has no list of segments")
        recording = self.recording
        recording.segments = segments
        recording.traces = [
            one if isinstance(one, Trace) else Trace() for one in result.get("device_traces", ())
        ]
        settings = result.get("allocator_settings")
        recording.settings = dict(settings) if isinstance(settings, dict) else {}
        recording.host = sum(one.size for one in result.get("host_segments", ()) if isinstance(one, Segment))
        return recording


def _number(stack: Any) -> int:
    return stack.number if isinstance(stack, Stack) else 0


def _shape_of(keys: tuple[Any, ...]) -> _Shape | None:
    """Where the values of an event with these keys stand; None where it is no event's."""
    if "action" not in keys or "size" not in keys:
        return None

    def at(*names: str) -> int:
        return next((2 * keys.index(name) + 1 for name in names if name in keys), -1)

    return _Shape(
        action=at("action"),
        address=at("addr", "device_free"),
        size=at("size"),
        stream=at("stream"),
        time=at("time_us"),
        frames=at("frames"),
        pool=at("pool_id"),
        forward=at("forward_frames"),
    )


def _frames_of_text(lines: Sequence[str]) -> tuple[Frame, ...]:
    """The frames of a traceback as text, which has the innermost last."""
    found = [
        Frame(match["file"], int(match["line"]), match["name"])
        for line in lines
        if (match := _TEXT_FRAME.search(str(line)))
    ]
    return tuple(reversed(found))
