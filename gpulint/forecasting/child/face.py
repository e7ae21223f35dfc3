"""`torch.cuda` as it looks where there is a card: every question answered, nothing of it true but the tape."""

from __future__ import annotations

import time
import types
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch

from gpulint.forecasting.child.tape import Tape


class Stream:
    """A stream or event that has always arrived."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.cuda_stream = 0
        self.stream_id = 0
        self.device = torch.device("cuda", 0)
        self._at = time.perf_counter()

    def record(self, *args: Any) -> None:
        self._at = time.perf_counter()

    def record_event(self, event: Any = None) -> Any:
        return event or Stream()

    def elapsed_time(self, other: Stream) -> float:
        """Milliseconds on this machine, which say nothing about the card."""
        return max(1e-3, 1e3 * (other._at - self._at))

    def query(self) -> bool:
        return True

    def wait(self, *args: Any) -> None:
        """Nothing to wait for."""

    wait_stream = wait_event = synchronize = wait

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: object) -> None:
        return None


class Outside(RuntimeError):
    """Something that a forecast does not cover."""


class CUDAGraph:
    """Its memory is a pool of its own, which is not modelled."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise Outside("CUDA graphs are outside of what a forecast covers: leave them out for it")


def put_on(tape: Tape) -> None:
    """Give `torch.cuda` this face."""
    cuda = torch.cuda
    for name, value in {**_facts(tape), **_memory(tape), **_doing_nothing()}.items():
        setattr(cuda, name, value)
    for name in ("empty_cache", *_memory(tape)):
        setattr(cuda.memory, name, getattr(cuda, name))
    cuda.random.get_rng_state = cuda.get_rng_state
    cuda.random.set_rng_state = cuda.set_rng_state
    cuda.CUDAGraph = cuda.graphs.CUDAGraph = CUDAGraph
    cuda.graphs.is_current_stream_capturing = cuda.is_current_stream_capturing
    torch.backends.cuda.is_built = lambda: True
    for kind in ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Byte", "Char", "Bool"):
        setattr(cuda, f"{kind}Tensor", _legacy(kind))


def _facts(tape: Tape) -> dict[str, Any]:
    card = tape.card
    properties = types.SimpleNamespace(
        name=card.label,
        total_memory=card.memory,
        major=card.capability[0],
        minor=card.capability[1],
        multi_processor_count=card.processors,
        warp_size=32,
        max_threads_per_multi_processor=2048,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=49152,
        L2_cache_size=50 << 20,
        is_integrated=0,
        is_multi_gpu_board=0,
        uuid="00000000-0000-0000-0000-000000000000",
        gcnArchName="",
    )
    stream = Stream()
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_properties": lambda device=None: properties,
        "get_device_capability": lambda device=None: card.capability,
        "get_device_name": lambda device=None: card.label,
        "get_arch_list": lambda: [f"sm_{card.capability[0]}{card.capability[1]}"],
        "is_bf16_supported": lambda including_emulation=True: including_emulation
        or card.capability >= (8, 0),
        "current_stream": lambda device=None: stream,
        "default_stream": lambda device=None: stream,
        "stream": lambda one=None: Stream(),
        "Stream": Stream,
        "Event": Stream,
        "is_current_stream_capturing": lambda: False,
        "utilization": lambda device=None: 0,
        "get_rng_state": lambda device="cuda": torch.zeros(16, dtype=torch.uint8, device="cpu"),
        "get_rng_state_all": lambda: [torch.zeros(16, dtype=torch.uint8, device="cpu")],
        "initial_seed": lambda: 0,
    }


def _memory(tape: Tape) -> dict[str, Any]:
    model = tape.model

    def figures(device: Any = None) -> dict[str, int]:
        now = {
            "allocated_bytes.all.current": model.allocated,
            "allocated_bytes.all.peak": model.peak_allocated,
            "reserved_bytes.all.current": model.reserved,
            "reserved_bytes.all.peak": model.peak_reserved,
            "active_bytes.all.current": model.allocated,
            "active_bytes.all.peak": model.peak_allocated,
            "num_alloc_retries": 0,
            "num_ooms": 0,
        }
        return defaultdict(int, now)

    def reset(device: Any = None) -> None:
        model.reset_peak()

    return {
        "empty_cache": tape.empty_cache,
        "memory_allocated": lambda device=None: model.allocated,
        "max_memory_allocated": lambda device=None: model.peak_allocated,
        "memory_reserved": lambda device=None: model.reserved,
        "max_memory_reserved": lambda device=None: model.peak_reserved,
        "memory_cached": lambda device=None: model.reserved,
        "reset_peak_memory_stats": reset,
        "reset_max_memory_allocated": reset,
        "memory_stats": figures,
        "memory_summary": lambda device=None,
        abbreviated=False: f"forecast: {model.allocated} bytes allocated",
        "memory_snapshot": list,
        "mem_get_info": lambda device=None: (
            max(0, tape.card.memory - tape.card.context - model.reserved),
            tape.card.memory,
        ),
        "set_per_process_memory_fraction": lambda fraction, device=None: None,
        "get_per_process_memory_fraction": lambda device=None: 1.0,
        "_record_memory_history": lambda *args, **kwargs: None,
    }


def _doing_nothing() -> dict[str, Callable[..., None]]:
    def nothing(*args: Any, **kwargs: Any) -> None:
        """There is nothing to be done."""

    names = (
        "set_device synchronize init _lazy_init manual_seed manual_seed_all seed seed_all set_rng_state "
        "set_rng_state_all ipc_collect reset_accumulated_memory_stats set_stream nvtx_range_push"
    )
    return dict.fromkeys(names.split(), nothing)


def _legacy(kind: str) -> Callable[..., Any]:
    """`torch.cuda.FloatTensor(2, 3)`."""

    def make(*args: Any) -> Any:
        return getattr(torch, f"{kind}Tensor")(*args).to("cuda")

    return make
