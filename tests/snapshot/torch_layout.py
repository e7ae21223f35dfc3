"""Writes memory snapshots in the layout of torch's own, from the allocator's model: a tool of the tests.

A snapshot can only be made on a GPU. This one has the keys of torch 2.11 to 2.13 in their order, shares what torch shares (the keys, a
frame's dictionary, the list of an allocation that is still alive) and writes anew what torch writes anew (`compile_context`,
pool ids). `test_real.py` holds it to real ones.
"""

import pickle
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpulint.allocator import Allocator
from gpulint.allocator.blocks import Block, Pool
from gpulint.allocator.settings import LARGE_SEGMENT, SMALL_SEGMENT

Lines = tuple[tuple[str, int, str], ...]  # file, line, function: innermost first


class _Watched(Allocator):
    """The model, with what it does to segments written down."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.happened: list[tuple[str, int, int]] = []

    def _new(self, pool: Pool, size: int, wanted: int, stream: int) -> Block | None:
        block = super()._new(pool, size, wanted, stream)
        if block is not None and not block.segment.expandable:
            self.happened.append(("segment_alloc", block.address, block.size))
        return block

    def _map(self, pool: Pool, block: Block, size: int) -> Block | None:
        before, address = self.reserved, block.address
        mapped = super()._map(pool, block, size)
        if mapped is not None:
            self.happened.append(("segment_map", address, self.reserved - before))
        return mapped

    def _unmap(self, pool: Pool, block: Block) -> None:
        page, base = SMALL_SEGMENT if pool.small else LARGE_SEGMENT, block.segment.address
        address = base - -(block.address - base) // page * page  # its first whole page
        before = self.reserved
        super()._unmap(pool, block)
        if before != self.reserved:
            self.happened.append(("segment_unmap", address, before - self.reserved))

    def _release(self, pool: Pool, block: Block) -> None:
        self.happened.append(("segment_free", block.address, block.size))
        super()._release(pool, block)


@dataclass
class Program:
    """Allocates and frees as a program would, and dumps what torch would have recorded of it.

    `record` and `dump` are `_record_memory_history` and `_dump_snapshot`; `entries` bounds the trace as `max_entries` does.
    """

    settings: str = ""
    capacity: int | None = None
    device: int = 0
    entries: int = 1 << 60
    recording: bool = True
    stacks: bool = True
    pools: bool = (
        True  # whether events name their memory pool, as those of torch 2.13 do and those of 2.11 do not
    )
    _trace: list[dict[str, Any]] = field(default_factory=list)
    _frames: dict[tuple[str, int, str], dict[str, Any]] = field(default_factory=dict)
    _born: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    _clock: int = 1_700_000_000_000_000

    def __post_init__(self) -> None:
        self.model = _Watched(self.settings, self.capacity)

    def malloc(self, size: int, *lines: tuple[str, int, str], stream: int = 0) -> int:
        stack = self._stack(lines)
        try:
            address = self.model.malloc(size, stream)
        except MemoryError:
            self._flush(stack)
            self._event("oom", self.model.free_on_card, size, stream, stack)
            raise
        self._flush(stack)
        self._event("alloc", address, size, stream, stack)
        if self.recording and self.stacks:
            self._born[address] = stack
        return address

    def free(self, address: int, *lines: tuple[str, int, str], pending: bool = False) -> None:
        block = self.model._heap.blocks[address]
        stack = self._stack(lines)
        self._event("free_requested", address, block.requested, block.stream, stack)
        self._event("free_completed", address, block.requested, block.stream, stack)
        self.model.free(address)
        self._born.pop(address, None)

    def empty_cache(self) -> None:
        self.model.empty_cache()
        self._flush(
            self._stack((("/venv/lib/python3.12/site-packages/torch/cuda/memory.py", 224, "empty_cache"),))
        )

    def snapshot(self) -> dict[str, Any]:
        return {
            "segments": [self._segment(blocks) for blocks in self._segments()],
            "device_traces": [[] for _ in range(self.device)] + [self._trace[-self.entries :]],
            "allocator_settings": self._allocator_settings(),
            "external_annotations": [],
        }

    def dump(self, path: Path, protocol: int = 4) -> Path:
        with open(path, "wb") as file:
            pickle.dump(self.snapshot(), file, protocol=protocol)
        return path

    # -- the layout --------------------------------------------------------------------------------------------

    def _stack(self, lines: Iterable[tuple[str, int, str]]) -> list[dict[str, Any]]:
        return [
            self._frames.setdefault(one, {"name": one[2], "filename": one[0], "line": one[1]})
            for one in lines
            if self.stacks
        ]

    def _flush(self, stack: list[dict[str, Any]]) -> None:
        for action, address, size in self.model.happened:
            self._event(action, address, size, 0, stack)
        self.model.happened.clear()

    def _event(
        self, action: str, address: int, size: int, stream: int, stack: list[dict[str, Any]] | None
    ) -> None:
        self._clock += 7
        if not self.recording:
            return
        entry = {
            "action": action,
            "device_free" if action == "oom" else "addr": address,
            "size": size,
            "stream": stream,
            "time_us": self._clock,
            "compile_context": "".join(("N", "/A")),  # a new string each time, as torch's is
            "user_metadata": "",
        }
        if self.pools:
            entry["pool_id"] = (0, stream - stream)
        if stack is not None and self.stacks:
            entry["frames"] = stack
        self._trace.append(entry)

    def _segments(self) -> list[list[Block]]:
        """The blocks of each segment, and of each mapped range of an expandable one."""
        found: list[list[Block]] = []
        for block in sorted(self.model._heap.blocks.values(), key=lambda one: one.address):
            if not block.mapped:
                continue
            if block.previous is not None and block.previous.mapped:
                found[-1].append(block)
            else:
                found.append([block])
        return found

    def _segment(self, blocks: list[Block]) -> dict[str, Any]:
        first = blocks[0]
        used = [block for block in blocks if block.allocated]
        return {
            "device": self.device,
            "address": first.address,
            "total_size": sum(block.size for block in blocks),
            "allocated_size": sum(block.size for block in used),
            "active_size": sum(block.size for block in used),
            "requested_size": sum(block.requested for block in used),
            "stream": first.stream,
            "segment_type": "small" if first.small else "large",
            "segment_pool_id": (0, first.stream - first.stream),
            "is_expandable": first.segment.expandable,
            "frames": [],
            "blocks": [self._block(block) for block in blocks],
        }

    def _block(self, block: Block) -> dict[str, Any]:
        return {
            "address": block.address,
            "size": block.size,
            "requested_size": block.requested,
            "state": "active_allocated" if block.allocated else "inactive",
            "frames": self._born.get(block.address, []) if block.allocated else [],
        }

    def _allocator_settings(self) -> dict[str, Any]:
        given = self.model.settings
        return {
            "PYTORCH_CUDA_ALLOC_CONF": self.settings,
            "max_split_size": -1 if given.max_split >= 1 << 62 else given.max_split,
            "garbage_collection_threshold": given.gc_threshold,
            "expandable_segments": given.expandable,
            "pinned_num_register_threads": 1,
            "release_lock_on_cudamalloc": False,
            "pinned_use_cuda_host_register": False,
            "graph_capture_record_stream_reuse": False,
            "roundup_power2_divisions": {
                str(1 << index): value for index, value in enumerate(given.divisions)
            },
        }


LIBRARY = "/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py"


def training(program: Program, steps: int = 20, depth: int = 30, layers: int = 8) -> None:
    """Steps of a network's training: weights, activations up to the backward, gradients."""
    below: Lines = tuple(("/home/me/train.py", 100 + number, f"level_{number}") for number in range(depth))
    weights = [
        program.malloc(
            4 << 20, (LIBRARY, 100, "__init__"), ("/home/me/model.py", 10 + layer, "build"), *below
        )
        for layer in range(layers)
    ]
    for step in range(steps):
        kept = []
        for layer in range(layers):
            lines = ((LIBRARY, 125, "forward"), ("/home/me/model.py", 40 + layer, "forward"), *below)
            scratch = program.malloc(3 << 20, *lines)
            kept.append(program.malloc(((step % 5) + 1) << 20, *lines))
            program.free(scratch, *below)
        gradients = [program.malloc(4 << 20) for _ in weights]
        for address in (*kept, *gradients):
            program.free(address, ("/home/me/train.py", 77, "step"), *below)


# -- programs whose allocations the tests record -------------------------------------------------------------


MIB = 1 << 20


def varied(program: Program, rounds: int = 120, seed: int = 1) -> None:
    """Sizes of every kind, freed in any order, some kept, and the cache emptied now and then."""
    chance = random.Random(seed)
    for round_ in range(rounds):
        got = [
            program.malloc(
                chance.randrange(1, 60 * MIB) if chance.random() < 0.6 else chance.randrange(1, MIB),
                ("/home/me/train.py", chance.randrange(1, 6), "step"),
            )
            for _ in range(15)
        ]
        chance.shuffle(got)
        for address in got[round_ % 40 == 0 :]:
            program.free(address, ("/home/me/train.py", 77, "step"))
        if round_ % 50 == 49:
            program.empty_cache()
