"""A driver that answers torch.cuda's questions, on the model of the caching allocator."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gpulint.allocator import Allocator
from gpulint.memory import figures

GIB = 1024**3


class FakeCuda:
    """One card of 8 GiB, of which another process holds `others`."""

    def __init__(self, others: int = 0) -> None:
        self.total = 8 * GIB
        self.others = others
        self.model = Allocator(capacity=self.total - others)
        self.workspace: int | None = None
        self.started = True
        self.ooms = 0

    def alloc(self, size: int) -> int:
        return self.model.malloc(size)

    def free(self, address: int) -> None:
        self.model.free(address)

    def stats(self, device: Any = None) -> dict[str, int]:
        now = self.model
        split = [b for b in self.model._heap.blocks.values() if b.mapped and b.split and not b.allocated]
        return {
            "allocated_bytes.all.current": now.allocated,
            "reserved_bytes.all.current": now.reserved,
            "active_bytes.all.current": now.allocated,
            "inactive_split_bytes.all.current": sum(block.size for block in split),
            "num_alloc_retries": now.retries,
            "num_ooms": self.ooms,
        }

    def blocks(self, include_traces: bool = True) -> list[dict[str, Any]]:
        return [
            {
                "device": 0,
                "segment_pool_id": (0, 0),
                "blocks": [
                    {"size": b.size, "state": "active_allocated" if b.allocated else "inactive"}
                    for b in self.model._heap.blocks.values()
                ],
            }
        ]

    def drop_workspaces(self) -> None:
        if self.workspace is not None:
            self.model.free(self.workspace)
            self.workspace = None


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    fake = FakeCuda()
    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "is_initialized": lambda: fake.started,
        "current_device": lambda: 0,
        "device_count": lambda: 1,
        "get_device_name": lambda device=None: "Fake 8G",
        "get_device_properties": lambda device=None: SimpleNamespace(total_memory=fake.total),
        "memory_stats": fake.stats,
        "memory_allocated": lambda device=None: fake.model.allocated,
        "memory_reserved": lambda device=None: fake.model.reserved,
        "max_memory_allocated": lambda device=None: fake.model.peak_allocated,
        "max_memory_reserved": lambda device=None: fake.model.peak_reserved,
        "reset_peak_memory_stats": lambda device=None: fake.model.reset_peak(),
        "mem_get_info": lambda device=None: (fake.model.free_on_card, fake.total),
        "memory_snapshot": fake.blocks,
        "empty_cache": fake.model.empty_cache,
        "synchronize": lambda device=None: None,
        "set_per_process_memory_fraction": lambda fraction, device=None: setattr(
            fake.model, "limit", int(fraction * fake.total)
        ),
    }
    for name, answer in answers.items():
        monkeypatch.setattr(torch.cuda, name, answer)
    # What a machine with a GPU would answer otherwise.
    monkeypatch.setattr(torch._C, "_cuda_hasPrimaryContext", lambda index: fake.started, raising=False)
    monkeypatch.setattr(torch._C, "_cuda_clearCublasWorkspaces", fake.drop_workspaces, raising=False)
    monkeypatch.setattr(figures, "_open", [])
    monkeypatch.setattr(figures, "_process", {})
    return fake
