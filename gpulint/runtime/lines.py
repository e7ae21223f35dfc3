"""Counts how often lines of interest run, and what each does to memory.

Python 3.12 on: `sys.monitoring`, switched on only for the code objects that contain such a line. Before:
`sys.settrace`, with a local trace function only in those. Nothing is watched where a debugger or coverage
tool traces already.
"""

from __future__ import annotations

import ast
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

from gpulint.runtime.frames import release_locals
from gpulint.runtime.result import LineFigures, Lines

_TOOL = "gpulint"
MEASURED_HITS = 50  # per line; beyond that only the hits are counted


class _Line:
    """What one line did so far."""

    __slots__ = ("growth", "hits", "peak", "sampled", "seconds", "taken", "tensors")

    def __init__(self) -> None:
        self.hits = 0
        self.sampled = 0
        self.taken = 0
        self.seconds = 0.0
        self.growth: int | None = None
        self.peak: int | None = None
        self.tensors: dict[str, int] | None = None


class LineCounter:
    """Watches the lines in `wanted`. `probe` may be set later (torch is imported by the script); `sampling`
    is set once warm-up is over."""

    def __init__(self, wanted: tuple[Lines, ...], tensor_bytes: Callable[[Any], int | None]) -> None:
        self.sampling = False
        self.probe: Any = None
        self.works = False
        self._tensor_bytes = tensor_bytes
        self._wanted = {os.path.realpath(entry.file): entry for entry in wanted}
        self._figures: dict[tuple[str, int], _Line] = {}
        self._running: dict[tuple[str, int], _Line] = {}  # lines that are run for those asked for
        self._files: dict[str, str | None] = {}
        self._read: list[FrameType] = []  # frames whose locals were read
        self._inside: dict[int, tuple[_Line, int, float]] = {}  # id of a frame -> the stretch under way there
        self._stopped = False
        for file, entry in self._wanted.items():
            for asked, run in _executable(file, entry.lines):
                self._figures[(entry.file, asked)] = self._running.setdefault((file, run), _Line())

    def start(self) -> None:
        """Begin to watch; afterwards `works` says whether that was possible."""
        if not self._figures:
            return
        if sys.version_info >= (3, 12):
            self._start_monitoring()
        elif sys.gettrace() is None:
            self.works = True
            threading.settrace(self._trace)
            sys.settrace(self._trace)

    def stop(self) -> None:
        """Watch no more."""
        if not self.works or self._stopped:
            return
        self._stopped = True
        if sys.version_info >= (3, 12):
            monitoring = sys.monitoring
            for event in (monitoring.events.PY_START, monitoring.events.PY_RESUME, monitoring.events.LINE):
                monitoring.register_callback(self._tool, event, None)
            monitoring.set_events(self._tool, 0)
            monitoring.free_tool_id(self._tool)
        else:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type,unused-ignore]

    def figures(self) -> list[LineFigures]:
        """One entry per line asked for, in order."""
        return [
            LineFigures(
                file,
                line,
                one.hits if self.works else None,
                one.sampled if self.works else None,
                one.seconds if one.taken else None,
                one.growth,
                one.peak,
                one.tensors,
            )
            for (file, line), one in self._figures.items()
        ]

    # -- both mechanisms -------------------------------------------------------------------------------------

    def _file(self, code: CodeType) -> str | None:
        """The file as it was asked for, if it was."""
        filename = code.co_filename
        if filename not in self._files:
            path = os.path.realpath(filename)
            self._files[filename] = path if path in self._wanted else None
        return self._files[filename]

    def _has_lines(self, code: CodeType, file: str) -> bool:
        return any((file, line) in self._running for _, _, line in code.co_lines() if line)

    def _at(self, frame: FrameType, file: str, line: int) -> None:
        """A line begins. Ends the stretch of the line before it in this frame; returns whether this line is
        of interest."""
        self._leave(frame)
        one = self._running.get((file, line))
        if one is None:
            return
        one.hits += 1
        if self.sampling:
            one.sampled += 1
            if one.taken < MEASURED_HITS and self.probe is not None:
                if one.tensors is None:
                    one.tensors = self._locals(frame)
                self._inside[id(frame)] = (one, self.probe.peak(reset=True), time.perf_counter())

    def _leave(self, frame: FrameType) -> None:
        stretch = self._inside.pop(id(frame), None)
        if stretch is None:
            return
        one, before, begin = stretch
        one.taken += 1
        one.seconds += time.perf_counter() - begin
        growth, peak = self.probe.allocated() - before, self.probe.since_reset() - before
        one.growth = growth if one.growth is None else max(one.growth, growth)
        one.peak = peak if one.peak is None else max(one.peak, peak)

    def _locals(self, frame: FrameType) -> dict[str, int]:
        sizes = {}
        for name, value in list(frame.f_locals.items()):
            size = self._tensor_bytes(value)
            if size is not None:
                sizes[name] = size
        self._read.append(frame)
        return sizes

    def release(self) -> None:
        """Let go of what reading locals has cached. Called at step boundaries, where no trace function is
        running."""
        for frame in self._read:
            release_locals(frame)
        self._read.clear()

    # -- Python 3.10 and 3.11 --------------------------------------------------------------------------------

    def _trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        file = self._file(frame.f_code)
        if file is None or not self._has_lines(frame.f_code, file):
            return None

        def local(frame: FrameType, event: str, arg: Any) -> Any:
            if event == "line":
                self._at(frame, file, frame.f_lineno)
            elif event == "return":
                self._leave(frame)
            return local

        return local

    # -- Python 3.12 on --------------------------------------------------------------------------------------

    def _start_monitoring(self) -> None:
        monitoring = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        for tool in (4, 3, 5, 2, 1):
            if monitoring.get_tool(tool) is None:
                break
        else:
            return
        self._tool = tool
        monitoring.use_tool_id(tool, _TOOL)
        events = monitoring.events
        monitoring.register_callback(tool, events.PY_START, self._started)
        monitoring.register_callback(tool, events.PY_RESUME, self._started)
        monitoring.register_callback(tool, events.LINE, self._line)
        monitoring.set_events(tool, events.PY_START | events.PY_RESUME)
        self.works = True

    def _started(self, code: CodeType, offset: int) -> Any:
        monitoring = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        file = self._file(code)
        if file is not None and self._has_lines(code, file):
            monitoring.set_local_events(self._tool, code, monitoring.events.LINE)
        return monitoring.DISABLE

    def _line(self, code: CodeType, line: int) -> Any:
        file = self._file(code)
        if file is None:
            return sys.monitoring.DISABLE  # type: ignore[attr-defined,unused-ignore]
        self._at(sys._getframe(1), file, line)
        return None


def _executable(file: str, lines: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Each line with the line that runs for it: itself, or the first line of the smallest statement around
    it."""
    try:
        with open(file, "rb") as source:
            text = source.read()
        tree = ast.parse(text)
        starts = {
            line for code in _codes(compile(text, file, "exec")) for _, _, line in code.co_lines() if line
        }
    except (OSError, SyntaxError, ValueError):
        return
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    for line in lines:
        if line in starts:
            yield line, line
            continue
        around = [node for node in statements if node.lineno <= line <= (node.end_lineno or node.lineno)]
        if around:
            smallest = min(around, key=lambda node: (node.end_lineno or node.lineno) - node.lineno)
            yield line, smallest.lineno


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
