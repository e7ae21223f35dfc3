"""Where the bytes are: entries that add up, a driver that tells much or little, and stretches that are booked."""

import os
import re
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from fake_nvml import SOURCE

from gpulint import memory
from gpulint.memory import accounts as taking
from gpulint.memory import device
from gpulint.memory.accounts import driver, segments
from gpulint.memory.accounts.records import Card, Entry, How, Tenant

MIB = 1024**2
CARD = {"name": "fake", "total": 8192 * MIB, "reserved": 600 * MIB}


class Driver(ModuleType):
    """NVML of one card. `processes` are what it lists; `used` is what the card says, with what it lists for nobody."""

    def __init__(self) -> None:
        super().__init__("pynvml")
        exec(SOURCE, vars(self))
        self.used = 9 * MIB
        self.processes: list[tuple[int, int | None]] = []
        self._cards = lambda: [{**CARD, "used": self.used, "processes": self.processes}]

    def take(self, size: int, pid: int) -> None:
        """A process takes memory: the card's use and the list grow."""
        self.used += size
        known = dict(self.processes)
        known[pid] = (known.get(pid) or 0) + size
        self.processes = list(known.items())


def segment(address: int, *blocks: tuple[str, int, int], pool: tuple[int, int] = (0, 0)) -> dict[str, Any]:
    """As `torch.cuda.memory_snapshot` gives them; a block is its state, its size and what was asked for."""
    told, at = [], address
    for state, size, requested in blocks:
        told.append({"address": at, "size": size, "requested_size": requested, "state": state})
        at += size
    active = sum(size for state, size, _ in blocks if state != "inactive")
    total = at - address
    return {
        "device": 0, "address": address, "total_size": total, "active_size": active, "segment_pool_id": pool, "blocks": told,
    }  # fmt: skip


USED, PENDING, FREE = "active_allocated", "active_pending_free", "inactive"
SEGMENTS = [
    segment(0, (USED, 4 * MIB, 4 * MIB - 100), (FREE, 16 * MIB, 0)),
    segment(100 * MIB, (USED, 32 * MIB, 32 * MIB), (USED, 32 * MIB, 32 * MIB), (PENDING, 2 * MIB, 2 * MIB)),
    segment(300 * MIB, (FREE, 20 * MIB, 0)),
    segment(400 * MIB, (USED, 3 * MIB, 3 * MIB), (FREE, 19 * MIB, 0), pool=(1, 0)),
    segment(500 * MIB, (USED, 1 * MIB + 512, 1 * MIB + 512), (FREE, 1 * MIB - 512, 0)),
]
RESERVED = (20 + 66 + 20 + 22 + 2) * MIB


@pytest.fixture
def card(cuda: Any, monkeypatch: pytest.MonkeyPatch) -> Driver:
    """The conftest's card with these segments on it, of which the tensors lie at 0 and in the middle of the second one."""
    fake = Driver()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    answers: dict[str, Any] = {
        "memory_snapshot": lambda include_traces=True: SEGMENTS,
        "memory_reserved": lambda device=None: RESERVED,
        "get_device_capability": lambda device=None: (9, 0),
        "get_device_properties": lambda device=None: SimpleNamespace(uuid="fake"),
        "host_memory_stats": lambda: {"allocated_bytes.current": 64 * MIB + 3},
    }
    for name, answer in answers.items():
        monkeypatch.setattr(torch.cuda, name, answer, raising=False)
    monkeypatch.setattr(segments, "_tensor_addresses", lambda index: [0, 100 * MIB + 64])
    monkeypatch.setattr(taking, "_booked", {})
    monkeypatch.setattr(taking, "_before", {})
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    fake.processes = [(os.getpid(), RESERVED + 600 * MIB)]
    fake.used += RESERVED + 600 * MIB
    return fake


class TestInside:
    def test_the_entries_add_up_to_what_torch_reserved(self, card: Driver) -> None:
        found = {entry.name: entry.bytes for entry in memory.account().inside}
        assert found == {
            "tensors": 36 * MIB - 100,
            "rounding": 100,
            "cuBLAS workspaces": 32 * MIB,
            "held by C++ code": 1 * MIB + 512,
            "waiting": 2 * MIB,
            "private pools": 22 * MIB,
            "cache, fragmented": 17 * MIB - 512,
            "cache, whole segments": 20 * MIB,
        }
        assert memory.account().reserved == RESERVED

    @pytest.mark.parametrize(
        ("settings", "capability", "size"),
        [
            ("", (9, 0), 32 * MIB),
            ("", (8, 0), 8_519_680),
            (":4096:8", (9, 0), 32 * MIB),
            (":16:8", (8, 0), 128 * 1024),
        ],
    )
    def test_the_size_of_a_workspace(
        self, monkeypatch: pytest.MonkeyPatch, settings: str, capability: tuple[int, int], size: int
    ) -> None:
        monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", settings)
        assert size in segments.workspace_sizes(capability)
        assert 1 * MIB in segments.workspace_sizes(capability)  # cublasLt's

    def test_an_allocator_that_tells_no_segments(self, card: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda include_traces=True: [])
        monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device=None: 5 * MIB)
        found = memory.account()
        assert [(entry.name, entry.bytes) for entry in found.inside] == [
            ("allocated", 5 * MIB),
            ("cache", RESERVED - 5 * MIB),
        ]

    def test_tensors_are_found_by_python_by_graphs_and_as_gradients(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        on_cpu = segments.storage_key

        def as_on_a_card(tensor: torch.Tensor) -> tuple[str, int] | None:
            key = on_cpu(tensor)
            return None if key is None else ("cuda:0", key[1])

        monkeypatch.setattr(segments, "storage_key", as_on_a_card)
        monkeypatch.setattr(torch.Tensor, "is_cuda", True)
        weight = torch.ones(50, 50, requires_grad=True)
        loss = weight.exp().exp().sum()
        loss.backward(retain_graph=True)
        saved = loss.grad_fn.next_functions[0][0]._saved_result.data_ptr()  # type: ignore[union-attr]
        found = segments._tensor_addresses(0)
        assert {weight.data_ptr(), weight.grad.data_ptr(), saved} <= set(found)  # type: ignore[union-attr]
        assert found == sorted(found)


class TestOutside:
    def test_what_nobody_explains(self, card: Driver) -> None:
        found = memory.account()
        assert (found.process, found.unexplained) == (RESERVED + 600 * MIB, 600 * MIB)
        assert found.elsewhere == 9 * MIB
        text = str(found)
        assert "unexplained                     600.00 MiB  the CUDA context, kernels loaded since" in text
        assert "listed for no process             9.00 MiB" in text
        assert "pinned host memory               64.00 MiB  on no card" in text

    @pytest.mark.parametrize("size", [1024 * MIB, RESERVED + 600 * MIB])  # as large as this one, too
    def test_another_process_on_the_card(self, card: Driver, size: int) -> None:
        card.take(size, 77)
        found = memory.account()
        assert found.card.tenants == (Tenant(77, size),)
        assert found.unexplained == 600 * MIB
        assert re.search(r"process 77 +\d", str(found))

    def test_a_container_in_which_the_driver_lists_nothing(self, card: Driver) -> None:
        card.processes = []
        found = memory.account()
        assert (found.process, found.unexplained) == (None, None)
        assert found.elsewhere == 609 * MIB
        text = str(found)
        assert "and other processes: the driver lists no processes here" in text
        assert "note: `with memory.book" in text

    def test_a_container_with_numbers_of_its_own(self, card: Driver) -> None:
        ours = (4_000_000, RESERVED + 600 * MIB)
        card.processes = [ours]
        assert memory.account().unexplained == 600 * MIB
        card.processes = [ours, (os.getpid(), 10 * MIB)]  # another one's by chance: it has less than torch
        assert memory.account().process is None
        card.processes = [ours, (4_000_001, 2000 * MIB)]  # now it could be either
        found = memory.account()
        assert found.process is None
        assert "numbers processes otherwise" in found.source

    def test_no_driver_library(self, card: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pynvml", None)  # type: ignore[arg-type]
        found = memory.account()
        assert found.process is None
        assert found.card.total == 8 * 1024 * MIB

    def test_a_card_without_a_context_gets_none(self, card: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
        def never(*_: Any) -> Any:
            raise AssertionError("this would make a context there")

        monkeypatch.setattr(torch.cuda, "mem_get_info", never)
        monkeypatch.setattr(torch.cuda, "synchronize", never)
        monkeypatch.setattr(torch._C, "_cuda_hasPrimaryContext", lambda index: False, raising=False)
        with memory.book("nothing"):
            pass
        assert memory.account(0).missing == "this process has no CUDA context on cuda:0"

    @pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
    def test_without_cuda_it_says_why(self) -> None:
        found = memory.account()
        assert found.missing
        assert "no CUDA memory to account for" in str(found)

    def test_asked_from_outside_it_does_not_start_cuda(
        self, cuda: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cuda.started = False

        def never(*_: Any) -> bool:
            raise AssertionError("this would keep children forked later from using CUDA")

        monkeypatch.setattr(torch.cuda, "is_available", never)
        assert [one.missing for one in taking.accounts()] == [device.UNUSED]


class TestBooking:
    def test_what_a_stretch_takes_outside(self, card: Driver) -> None:
        with memory.book("NCCL"):
            card.take(650 * MIB, os.getpid())
            card.take(100 * MIB, 77)  # of another process: not ours
        with pytest.raises(ZeroDivisionError), memory.book("x"):
            _ = 1 / 0
        with memory.book("NCCL"):
            card.take(50 * MIB, os.getpid())
        found = memory.account()
        assert found.outside == (Entry("NCCL", 700 * MIB, How.BOOKED),)
        assert found.unexplained == 600 * MIB

    def test_what_torch_takes_meanwhile_is_not_booked(
        self, card: Driver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with memory.book("model"):
            card.take(40 * MIB, os.getpid())
            monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device=None: RESERVED + 40 * MIB)
        assert memory.account().outside == ()

    def test_in_a_container_a_start_that_was_booked_tells_what_is_ours(self, card: Driver, cuda: Any) -> None:
        card.processes, card.used = [], 300 * MIB
        cuda.started = False
        with memory.book("CUDA context"):
            cuda.started = True
            card.used += RESERVED + 500 * MIB
        card.used += 30 * MIB
        found = memory.account()
        assert found.process == RESERVED + 530 * MIB
        assert "the growth of the card's use" in found.source
        assert found.outside == (Entry("CUDA context", 500 * MIB, How.BOOKED),)
        assert found.unexplained == 30 * MIB

    @pytest.mark.parametrize("other", [[], [(77, 3000 * MIB)]])
    def test_a_start_where_the_driver_lists_us(
        self, card: Driver, cuda: Any, other: list[tuple[int, int | None]]
    ) -> None:
        card.processes, card.used = other, 3009 * MIB
        cuda.started = False
        with memory.book("CUDA context"):
            cuda.started = True
            card.take(RESERVED + 518 * MIB, os.getpid())
            card.used += 5 * MIB  # which the driver spends on every process, and lists for none
        found = memory.account()
        assert found.outside == (Entry("CUDA context", 518 * MIB, How.BOOKED),)
        assert found.unexplained == 0

    def test_nccl_that_was_not_booked_is_named(self, card: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.distributed, "get_backend", lambda: "nccl")
        assert "NCCL is in use, and its buffers are not told apart" in str(memory.account())


class TestTheContextMeasured:
    """Real processes, in place of whose CUDA this one's counting stands."""

    def test_what_the_driver_lists_for_the_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(taking, "_CODE", "print('up', flush=True); import sys; sys.stdin.read()")
        looks: list[Card] = []
        started: list[int] = []
        real = taking.subprocess.Popen

        def popen(*given: Any, **more: Any) -> Any:
            process = real(*given, **more)
            started.append(process.pid)
            return process

        def look() -> Card:
            tenants = (Tenant(started[-1], 518 * MIB),) if len(looks) % 2 else ()
            looks.append(Card(0, 1, tenants))
            return looks[-1]

        monkeypatch.setattr(taking.subprocess, "Popen", popen)
        assert taking.measured_context(0, look) == 518 * MIB
        assert len(started) == 2

    def test_a_card_that_does_not_hold_still_and_one_without_cuda(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(taking, "_CODE", "print('up', flush=True); import sys; sys.stdin.read()")
        sizes = iter([0, 10, 0, 50, 0, 90, 0, 200])
        with pytest.raises(taking.NotMeasured, match="does not hold still"):
            taking.measured_context(0, lambda: Card(next(sizes) * MIB, 1))
        monkeypatch.setattr(taking, "_CODE", "raise SystemExit('no card for you')")
        with pytest.raises(taking.NotMeasured, match="no card for you"):
            taking.measured_context(0, lambda: Card(0, 1))


def test_more_told_than_there_is_is_said(card: Driver) -> None:
    with memory.book("x"):
        card.take(5 * MIB, os.getpid())
    card.processes = [(os.getpid(), RESERVED + 1 * MIB)]
    assert "more is told above than the process has" in str(memory.account())


def test_windows_tells_no_sizes() -> None:
    assert driver.share_of(5, [Tenant(5, None)], 0)[0] is None
    assert "does not tell how much" in driver.share_of(5, [Tenant(5, None)], 0)[1]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_real_card() -> None:
    kept = [torch.ones(1024, 1024, device="cuda", requires_grad=True) for _ in range(3)]
    (kept[0] @ kept[1]).sum().backward()
    torch.cuda.synchronize()
    found = memory.account()
    assert found.reserved == torch.cuda.memory_reserved()
    told = {entry.name: entry.bytes for entry in found.inside}
    assert told["tensors"] >= 5 * 4 * MIB  # three tensors, and two gradients that nobody has asked for
    assert told["cuBLAS workspaces"] == memory.clear().workspaces
    assert found.card is not None
    assert found.unexplained is None or found.unexplained > 0
