"""The figures of one CUDA device as this process and its driver see it; the peaks of stretches of a program, and `monitor`: what a stretch
of code did to memory.

The allocator has one peak counter for a device, and here several windows share it. Whoever needs the peak of a stretch has to reset
the counter at its start, and everybody who is still waiting for the peak of a longer stretch loses it. So before each reset the peak
so far is given to every open window and to the process's own memory of it.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from typing import Any, Final, TypeVar, cast

from gpulint.memory.accounts.driver import driver
from gpulint.memory.accounts.segments import segments_of
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

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
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
        said = f"the fraction must be above 0 and at most 1, got {fraction}"
        raise ValueError(f"{said}; 0.8 is 80 % of the card")
    missing = cuda_missing()
    if missing:
        say_once(f"limit() has no effect: {missing}")
        return 0
    torch = torch_module()
    index = device_index(device)
    torch.cuda.set_per_process_memory_fraction(float(fraction), index)
    return int(torch.cuda.get_device_properties(index).total_memory * fraction)


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """Bytes on one device at one moment. Without CUDA all figures are 0 and `missing` says why.

    `allocated` is held by tensors, `reserved` what the caching allocator took from the driver, `active` is
    allocated plus what waits for other streams, `inactive_split` the free parts of blocks that are partly in
    use. `free` and `total` are the whole card's, other processes included; None where they could not be read
    without starting CUDA. `largest_free_block` is the largest piece of the cache that one tensor could take;
    None where the blocks were not asked for. `retries` counts the times the allocator had to give its cache
    back and try again, `ooms` the errors thrown.
    """

    device: int
    name: str = ""
    allocated: int = 0
    reserved: int = 0
    active: int = 0
    inactive_split: int = 0
    peak_allocated: int = 0
    peak_reserved: int = 0
    free: int | None = None
    total: int | None = None
    largest_free_block: int | None = None
    retries: int = 0
    ooms: int = 0
    missing: str = ""

    @property
    def cached(self) -> int:
        """Bytes reserved and not allocated."""
        return max(0, self.reserved - self.allocated)

    @property
    def fragmentation(self) -> float | None:
        """The part of the cache that lies outside its largest free block, 0 to 1; None where not known."""
        if self.largest_free_block is None:
            return None
        return 1 - self.largest_free_block / self.cached if self.cached else 0.0

    @property
    def other_processes(self) -> int | None:
        """Bytes on the card that this process's allocator did not reserve: other processes and CUDA itself."""
        if self.free is None or self.total is None:
            return None
        return max(0, self.total - self.free - self.reserved)

    def to_json(self) -> dict[str, Any]:
        """Plain figures, with `cached` and `fragmentation`."""
        return {**asdict(self), "cached": self.cached, "fragmentation": self.fragmentation}

    def log(self, prefix: str = "", level: int = logging.INFO) -> MemoryStats:
        """Write `summary()` to the logger `gpulint.memory`, and return these figures."""
        tell(f"{prefix}: {self.summary()}" if prefix else self.summary(), level)
        return self

    def summary(self) -> str:
        """One line for people."""
        if self.missing:
            return f"no CUDA memory to report: {self.missing}"
        parts = [
            f"cuda:{self.device} allocated {format_bytes(self.allocated)} (peak {format_bytes(self.peak_allocated)})",
            f"reserved {format_bytes(self.reserved)} (peak {format_bytes(self.peak_reserved)})",
        ]
        if self.fragmentation is not None and self.cached:
            assert self.largest_free_block is not None
            parts.append(
                f"cached {format_bytes(self.cached)}, largest block {format_bytes(self.largest_free_block)}"
                f" ({self.fragmentation:.0%} fragmented)"
            )
        if self.free is not None and self.total is not None:
            parts.append(f"card {format_bytes(self.free)} free of {format_bytes(self.total)}")
        parts.append(f"retries {self.retries}, OOMs {self.ooms}")
        return " | ".join(parts)

    __str__ = summary


_SIZES: Final = ("allocated", "reserved", "active", "inactive_split")


def stats(device: Any = None, blocks: bool = True) -> MemoryStats:
    """The figures of `device` (None: the current one). Never initialises CUDA.

    `blocks=False` leaves out `largest_free_block`, which needs a look at every block of the cache: well below a
    millisecond, more on old versions of torch while allocation history is being recorded.
    """
    missing = cuda_missing()
    if missing:
        return MemoryStats(-1, missing=missing)
    torch = torch_module()
    index = device_index(device)
    if not cuda_started():
        free, total = _card_without_cuda(index)
        return MemoryStats(index, free=free, total=total)
    counters = torch.cuda.memory_stats(index)
    free, total = torch.cuda.mem_get_info(index)
    peak_allocated, peak_reserved = process_peak(index)
    return MemoryStats(
        device=index,
        name=torch.cuda.get_device_name(index),
        peak_allocated=peak_allocated,
        peak_reserved=peak_reserved,
        free=int(free),
        total=int(total),
        largest_free_block=_largest_free_block(index) if blocks else None,
        retries=counters.get("num_alloc_retries", 0),
        ooms=counters.get("num_ooms", 0),
        **{name: counters.get(f"{name}_bytes.all.current", 0) for name in _SIZES},
    )


def _largest_free_block(index: int) -> int:
    blocks = (
        block
        for segment in segments_of(index)
        if tuple(segment.get("segment_pool_id", (0, 0))) == (0, 0)
        for block in segment["blocks"]
    )
    return max((int(block["size"]) for block in blocks if block["state"] == "inactive"), default=0)


def _card_without_cuda(index: int) -> tuple[int | None, int | None]:
    """Free and total bytes through NVML, because `mem_get_info` would start CUDA. Only where NVML's numbers are
    CUDA's: NVML ignores CUDA_VISIBLE_DEVICES, and orders cards by their bus where CUDA puts the fastest first."""
    in_order = os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES") is not None
    if chosen or not (in_order or torch_module().cuda.device_count() == 1):
        return None, None
    try:
        with driver() as nvml:
            memory = nvml.nvmlDeviceGetMemoryInfo(nvml.nvmlDeviceGetHandleByIndex(index))
    except Exception:  # no library, no driver, no permission: the figures stay unknown
        return None, None
    return int(memory.free), int(memory.total)
