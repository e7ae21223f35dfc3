"""Who else is on the cards, from a driver in NVML's place."""

from __future__ import annotations

import sys

import pytest

from gpulint.operator import gpu
from gpulint.operator.gpu import Card, Tenant

MIB = 1024**2


def cards(*first: Tenant, second: tuple[Tenant, ...] = ()) -> list[Card]:
    return [
        Card(0, "NVIDIA H200", "GPU-aa", used=900 * MIB, tenants=first),
        Card(1, "NVIDIA H200", "GPU-bb", used=3 * MIB, tenants=second),
    ]


def test_processes_on_the_visible_cards_are_others() -> None:
    seen = cards(Tenant(4_000_000, 880 * MIB))
    (one,) = gpu.others(seen, {})
    assert (one.card, one.pid, one.bytes) == ("GPU 0 (NVIDIA H200)", 4_000_000, 880 * MIB)
    assert gpu.others(seen, {"CUDA_VISIBLE_DEVICES": "1"}) == ()
    assert gpu.others(seen, {"CUDA_VISIBLE_DEVICES": "GPU-b"}) == ()
    assert gpu.others(seen, {"CUDA_VISIBLE_DEVICES": ""}) == ()
    assert len(gpu.others(seen, {"CUDA_VISIBLE_DEVICES": "1,0"})) == 1


def test_memory_that_no_listed_process_has_is_somebodys() -> None:
    """In a container the driver lists no process, and tells what is in use all the same."""
    (one,) = gpu.others(cards(), {})
    assert (one.pid, one.bytes) == (0, 900 * MIB)


def test_a_process_of_unknown_size_explains_what_is_in_use() -> None:
    (one,) = gpu.others(cards(Tenant(4_000_000, None)), {})
    assert (one.pid, one.bytes) == (4_000_000, None)


def test_after_a_card_that_is_not_there_cuda_sees_none() -> None:
    assert [card.index for card in gpu.visible(cards(), "0,7,1")] == [0]
    assert [card.index for card in gpu.visible(cards(), "MIG-GPU-aa/1/0")] == [0, 1]


def test_without_the_library_it_is_said_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "pip install nvidia-ml-py" in gpu.look()[1]
