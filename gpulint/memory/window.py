"""`monitor`: what a stretch of code did to memory."""

from __future__ import annotations

import functools
import inspect
import logging
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar, cast

from gpulint.memory.device import cuda_missing, cuda_started, device_index, in_use, tell, torch_module
from gpulint.memory.peaks import PeakWindow, close_window, open_window
from gpulint.units import format_bytes

F = TypeVar("F", bound=Callable[..., Any])


class Window:
    """The figures of one stretch: `before`, `after`, `peak`, `peak_reserved`, `delta` in bytes, `seconds`.

    `peak` is the highest allocated memory within the stretch, wherever it started; `rise` is how far that is
    above `before`. All are 0 where CUDA is not in use; `missing` then says why. `error` is the name of the
    exception that ended it, or None.
    """

    __slots__ = ("after", "before", "error", "missing", "name", "peak", "peak_reserved", "seconds")

    def __init__(self, name: str) -> None:
        self.name = name
        self.before = self.after = self.peak = self.peak_reserved = 0
        self.seconds = 0.0
        self.error: str | None = None
        self.missing = ""

    @property
    def delta(self) -> int:
        return self.after - self.before

    @property
    def rise(self) -> int:
        return max(0, self.peak - self.before)

    def summary(self) -> str:
        if self.missing:
            return f"{self.name}: {self.seconds:.3f} s, no CUDA memory: {self.missing}"
        text = (
            f"{self.name}: allocated {format_bytes(self.before)} -> {format_bytes(self.after)}"
            f" ({format_bytes(self.delta, signed=True)}), peak {format_bytes(self.peak)}"
            f" (+{format_bytes(self.rise)}), {self.seconds:.3f} s"
        )
        return f"{text}, ended by {self.error}" if self.error else text

    def __str__(self) -> str:
        return self.summary()


class monitor:
    """Measure a `with` block or every call of a function.

        with memory.monitor("validation") as window:
            validate()
        print(window.peak)

        @memory.monitor("step")
        def step(batch): ...

    Nested and concurrent uses each see their own peak: the allocator's peak counter is shared out between them.
    `memory.stats()` keeps reporting the process's peak. The result is logged to `gpulint.memory` at `level`
    (None: not at all). Times are host time; `synchronize=True` waits for the GPU at both ends.
    """

    def __init__(
        self,
        name: str = "",
        device: Any = None,
        *,
        level: int | None = logging.INFO,
        synchronize: bool = False,
    ) -> None:
        self._name = name
        self._device = device
        self._level = level
        self._synchronize = synchronize
        self._open: list[tuple[Window, PeakWindow | None, float]] = []

    def __enter__(self) -> Window:
        window = Window(self._name or "block")
        missing = cuda_missing()
        peaks = None
        if missing is None:
            index = device_index(self._device)
            self._wait()
            peaks = open_window(index)
            window.before = in_use(index)[0]
        else:
            window.missing = missing
        self._open.append((window, peaks, time.perf_counter()))
        return window

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        window, peaks, began = self._open.pop()
        if peaks is not None:
            self._wait()
        window.seconds = time.perf_counter() - began
        if peaks is not None:
            close_window(peaks)
            window.after = in_use(peaks.device)[0]
            window.peak = max(peaks.allocated, window.before, window.after)
            window.peak_reserved = peaks.reserved
        window.error = kind.__name__ if kind else None
        if self._level is not None:
            tell(window.summary(), self._level)

    def _wait(self) -> None:
        if self._synchronize and cuda_started():
            torch_module().cuda.synchronize()

    def __call__(self, function: F) -> F:
        def fresh() -> monitor:
            # One object a call: calls may overlap in threads and coroutines.
            name = self._name or function.__qualname__
            return monitor(name, self._device, level=self._level, synchronize=self._synchronize)

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def measured_async(*args: Any, **kwargs: Any) -> Any:
                with fresh():
                    return await function(*args, **kwargs)

            return cast("F", measured_async)

        @functools.wraps(function)
        def measured(*args: Any, **kwargs: Any) -> Any:
            with fresh():
                return function(*args, **kwargs)

        return cast("F", measured)
