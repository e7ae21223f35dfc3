"""The peaks of stretches of a program, and `monitor`: what a stretch of code did to memory.

The allocator has one peak counter for a device, and here several windows share it. Whoever needs the peak of a stretch has to reset
the counter at its start, and everybody who is still waiting for the peak of a longer stretch loses it. So before each reset the peak
so far is given to every open window and to the process's own memory of it.
"""

from __future__ import annotations

import functools
import inspect
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from types import TracebackType
from typing import Any, TypeVar, cast

from gpulint.memory.device import (
    cuda_missing,
    cuda_started,
    device_index,
    in_use,
    say_once,
    tell,
    torch_module,
)
from gpulint.units import format_bytes

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(slots=True, eq=False)
class Window:
    """The figures of one stretch: `before`, `after`, `peak`, `peak_reserved`, `delta` in bytes, `seconds`.

    `peak` is the highest allocated memory within the stretch, wherever it started; `rise` is how far that is
    above `before`. All are 0 where CUDA is not in use; `missing` then says why. `error` is the name of the
    exception that ended it, or None.
    """

    name: str
    device: int = -1
    before: int = 0
    after: int = 0
    peak: int = 0
    peak_reserved: int = 0
    seconds: float = 0.0
    error: str | None = None
    missing: str = ""

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

    __str__ = summary

    def _see(self, allocated: int, reserved: int) -> None:
        self.peak = max(self.peak, allocated)
        self.peak_reserved = max(self.peak_reserved, reserved)


_lock = threading.Lock()
_open: list[Window] = []
_process: dict[int, Window] = {}


def _counters(device: int) -> tuple[int, int]:
    cuda = torch_module().cuda
    return int(cuda.max_memory_allocated(device)), int(cuda.max_memory_reserved(device))


def _hand_over(device: int) -> None:
    figures = _counters(device)
    for window in (*_open, _process.setdefault(device, Window("process", device))):
        if window.device == device:
            window._see(*figures)
    torch_module().cuda.reset_peak_memory_stats(device)


def open_window(device: int, name: str = "") -> Window:
    """Begin a window at the memory in use now; before CUDA has started that is none."""
    window = Window(name, device)
    with _lock:
        if cuda_started():
            _hand_over(device)
        _open.append(window)
    window.before = in_use(device)[0]
    return window


def close_window(window: Window) -> None:
    """End a window; its figures are final."""
    with _lock:
        if cuda_started():
            window._see(*_counters(window.device))
        if window in _open:
            _open.remove(window)
    window.after = in_use(window.device)[0]
    window.peak = max(window.peak, window.before, window.after)


def process_peak(device: int) -> tuple[int, int]:
    """Peak allocated and reserved bytes of the process since the start or the last `reset_peak`."""
    allocated, reserved = _counters(device)
    with _lock:
        past = _process.get(device, Window("process", device))
        return max(allocated, past.peak), max(reserved, past.peak_reserved)


@dataclass(eq=False)
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

    name: str = ""
    device: Any = None
    _: KW_ONLY
    level: int | None = logging.INFO
    synchronize: bool = False
    _open: list[tuple[Window, float]] = field(default_factory=list, init=False, repr=False)

    def __enter__(self) -> Window:
        name, missing = self.name or "block", cuda_missing()
        if missing is None:
            self._wait()
            window = open_window(device_index(self.device), name)
        else:
            window = Window(name, missing=missing)
        self._open.append((window, time.perf_counter()))
        return window

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        window, began = self._open.pop()
        if not window.missing:
            self._wait()
        window.seconds = time.perf_counter() - began
        if not window.missing:
            close_window(window)
        window.error = kind.__name__ if kind else None
        if self.level is not None:
            tell(window.summary(), self.level)

    def _wait(self) -> None:
        if self.synchronize and cuda_started():
            torch_module().cuda.synchronize()

    def __call__(self, function: F) -> F:
        def fresh() -> monitor:
            # One object a call: calls may overlap in threads and coroutines.
            return replace(self, name=self.name or function.__qualname__)

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


# -- of the calling process; they never reach into another ------------------------------------------------------


def reset_peak(device: Any = None) -> bool:
    """Start the peak figures of `device` afresh. Peaks of open `monitor` windows stay theirs.

    Returns False, and logs why, where there is no CUDA; also False before CUDA has started: there is no peak.
    """
    missing = cuda_missing()
    if missing:
        say_once(f"reset_peak() has nothing to reset: {missing}")
        return False
    if not cuda_started():
        return False
    with _lock:
        _hand_over(index := device_index(device))
        _process.pop(index, None)
    return True


def limit(fraction: float, device: Any = None) -> int:
    """Let this process allocate at most `fraction` (above 0, at most 1) of the card; the bytes that this is.

    Beyond it the allocator raises its OutOfMemoryError. Only the caching allocator obeys: the CUDA context,
    NCCL and cuDNN's own memory come on top. Returns 0, and logs why, where there is no CUDA.
    """
    if not 0 < fraction <= 1:
        raise ValueError(
            f"the fraction must be above 0 and at most 1, got {fraction}; 0.8 is 80 % of the card"
        )
    missing = cuda_missing()
    if missing:
        say_once(f"limit() has no effect: {missing}")
        return 0
    torch = torch_module()
    index = device_index(device)
    torch.cuda.set_per_process_memory_fraction(float(fraction), index)
    return int(torch.cuda.get_device_properties(index).total_memory * fraction)
