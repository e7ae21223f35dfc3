"""Figures, clearing, limits, monitor windows, and what is still alive: on a fake card, and without CUDA."""

import asyncio
import logging
import subprocess
import sys
import types

import pytest
import torch

from gpulint import memory
from gpulint.memory.live import Held, held
from gpulint.memory.releasing import Cleared

MIB = 1024**2
GIB = 1024**3


def test_importing_the_kit_does_not_import_torch() -> None:
    code = "import sys, gpulint.memory as m; m.stats, m.oom_guard, m.Monitor; print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


def test_functions_are_not_hidden_by_modules_of_their_name() -> None:
    assert all(callable(getattr(memory, name)) for name in memory.__all__)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_without_cuda_everything_says_why_and_does_what_is_possible() -> None:
    class Node:
        def __init__(self) -> None:
            self.me = self

    for _ in range(50):
        Node()
    cleared, figures = memory.clear(), memory.stats()
    assert cleared.objects >= 50
    assert cleared.missing in str(cleared)
    assert figures.allocated == 0
    assert figures.missing
    assert figures.missing in figures.summary()
    with memory.monitor("block", level=None) as window:
        pass
    assert window.missing
    assert (memory.limit(0.5), memory.reset_peak()) == (0, False)


class TestFigures:
    def test_stats(self, cuda, caplog) -> None:
        cuda.model.capacity -= GIB  # another process's
        kept = cuda.alloc(30 * MIB)
        cuda.free(cuda.alloc(100 * MIB))
        with caplog.at_level(logging.INFO, "gpulint.memory"):
            figures = memory.stats().log("after model")
        assert figures.allocated == 30 * MIB
        assert figures.reserved == 130 * MIB
        assert figures.peak_allocated == 130 * MIB
        assert figures.largest_free_block == 100 * MIB
        assert figures.fragmentation == 0
        assert figures.free == cuda.total - 130 * MIB - GIB
        assert figures.other_processes == GIB
        assert figures.to_json()["cached"] == 100 * MIB
        assert caplog.messages == [f"after model: {figures.summary()}"]
        assert figures.summary().startswith("cuda:0 allocated 30.00 MiB (peak 130.00 MiB)")
        cuda.free(kept)

    def test_fragmentation_is_the_part_outside_the_largest_block(self, cuda) -> None:
        blocks = [cuda.alloc(5 * MIB) for _ in range(8)]  # four in each of two 20 MiB segments
        cuda.free(blocks[0])
        cuda.free(blocks[2])
        figures = memory.stats()
        assert figures.cached == 10 * MIB
        assert figures.largest_free_block == 5 * MIB
        assert figures.fragmentation == pytest.approx(0.5)
        assert figures.inactive_split == 10 * MIB

    def test_a_device_that_is_not_there(self, cuda) -> None:
        with pytest.raises(ValueError, match="no CUDA device 3"):
            memory.stats(3)
        with pytest.raises(ValueError, match="expected a CUDA device"):
            memory.stats("cpu")

    @pytest.mark.parametrize(
        ("environment", "cards", "known"),
        [
            ({}, 1, True),
            ({}, 2, False),  # CUDA puts the fastest first, NVML goes by the bus
            ({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, 2, True),
            ({"CUDA_VISIBLE_DEVICES": "1"}, 1, False),
        ],
    )
    def test_the_card_before_cuda_only_where_the_numbering_is_certain(
        self, cuda, monkeypatch, environment, cards, known
    ) -> None:
        cuda.started = False
        for name in ("CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: cards)
        driver = types.ModuleType("pynvml")
        driver.nvmlInit = driver.nvmlShutdown = lambda: None
        driver.nvmlDeviceGetHandleByIndex = lambda index: index
        driver.nvmlDeviceGetMemoryInfo = lambda handle: types.SimpleNamespace(free=5 * GIB, total=8 * GIB)
        monkeypatch.setitem(sys.modules, "pynvml", driver)
        assert (memory.stats().free, memory.stats().allocated) == (5 * GIB if known else None, 0)


class TestClear:
    def test_says_what_each_step_freed(self, cuda) -> None:
        clear = memory.clear  # loaded before there is a cycle: what loading makes may be collected on the way
        cuda.workspace = cuda.alloc(32 * MIB)
        cuda.alloc(100 * MIB)
        cuda.free(cuda.alloc(200 * MIB))

        class Cycle:
            def __init__(self, address: int) -> None:
                self.me, self.address = self, address

            def __del__(self) -> None:
                cuda.free(self.address)

        Cycle(cuda.alloc(50 * MIB))
        cleared = clear()
        assert cleared.garbage == 50 * MIB
        assert cleared.workspaces == 32 * MIB
        assert cleared.returned == 232 * MIB  # the 50 came out of the 200
        assert cleared.allocated == cleared.reserved == 100 * MIB
        assert "still allocated: 100.00 MiB" in str(cleared)


class TestLingering:
    def test_names_tensor_and_holder(self) -> None:
        class Trainer:
            pass

        trainer = Trainer()
        trainer.history = [torch.zeros(700, 1000) for _ in range(2)]
        found = [t for t in memory.lingering("cpu", 50) if t.shape == (700, 1000)]
        assert [t.bytes for t in found] == [2_800_000] * 2
        assert all("self.history" in t.holders[0] and "Trainer" in t.holders[0] for t in found)

    def test_a_view_counts_with_its_base(self) -> None:
        row = torch.zeros(900, 1000)[0]
        (found,) = (t for t in memory.lingering("cpu", 50) if t.bytes == 3_600_000)
        assert "`row`" in found.holders[0]
        del row

    def test_parameters_are_meant_to_be_there(self) -> None:
        layer = torch.nn.Linear(1100, 1000)
        assert not [t for t in memory.lingering("cpu", 50) if t.shape == (1000, 1100)]
        del layer


class TestLimits:
    def test_limit(self, cuda) -> None:
        assert memory.limit(0.5) == 4 * GIB
        assert cuda.model.limit == 4 * GIB

    @pytest.mark.parametrize("fraction", [0, -0.1, 1.5, 80])
    def test_limit_is_a_fraction(self, fraction) -> None:
        with pytest.raises(ValueError, match=r"0\.8 is 80 %"):
            memory.limit(fraction)


class TestMonitor:
    def test_windows_within_each_other_have_their_own_peaks(self, cuda) -> None:
        cuda.started = False
        with memory.monitor("outer", level=None) as outer:  # from before CUDA has started
            cuda.started = True
            cuda.free(cuda.alloc(300 * MIB))
            with memory.monitor("inner", level=None) as inner:
                cuda.free(cuda.alloc(100 * MIB))
            cuda.free(cuda.alloc(50 * MIB))
        with memory.monitor("outer", level=None) as second, memory.monitor("inner", level=None):
            cuda.alloc(30 * MIB)
            cuda.free(cuda.alloc(400 * MIB))
        assert (outer.rise, inner.peak, second.peak) == (300 * MIB, 100 * MIB, 430 * MIB)
        assert (second.before, second.after, second.delta) == (0, 30 * MIB, 30 * MIB)
        assert memory.stats().peak_allocated == 430 * MIB

    def test_reset_peak_inside_leaves_the_window_its_peak(self, cuda) -> None:
        with memory.monitor("window", level=None) as window:
            cuda.free(cuda.alloc(100 * MIB))
            memory.reset_peak()
        assert window.peak == 100 * MIB
        assert memory.stats().peak_allocated == 0

    def test_windows_may_overlap_in_any_order(self, cuda) -> None:
        first, second = memory.monitor("a", level=None), memory.monitor("b", level=None)
        one = first.__enter__()
        cuda.free(cuda.alloc(100 * MIB))
        two = second.__enter__()
        cuda.free(cuda.alloc(50 * MIB))
        first.__exit__(None, None, None)
        cuda.free(cuda.alloc(80 * MIB))
        second.__exit__(None, None, None)
        assert (one.peak, two.peak) == (100 * MIB, 80 * MIB)

    def test_decorator_logs_each_call_under_the_functions_name(self, cuda, caplog) -> None:
        @memory.monitor()
        def forward(size: int) -> int:
            """Docstring."""
            cuda.free(cuda.alloc(size))
            return size

        with caplog.at_level(logging.INFO, "gpulint.memory"):
            assert forward(MIB) == MIB
            assert forward(2 * MIB) == 2 * MIB
        assert forward.__doc__ == "Docstring."
        assert len(caplog.messages) == 2
        assert "forward: allocated 0 B -> 0 B" in caplog.messages[1]
        assert "peak 2.00 MiB" in caplog.messages[1]

    def test_decorator_of_a_coroutine_covers_its_run(self, cuda, caplog) -> None:
        @memory.monitor("job")
        async def job() -> None:
            await asyncio.sleep(0)
            cuda.free(cuda.alloc(7 * MIB))

        with caplog.at_level(logging.INFO, "gpulint.memory"):
            asyncio.run(job())
        assert "peak 7.00 MiB" in caplog.messages[0]

    def test_an_exception_passes_and_is_named(self, cuda, caplog) -> None:
        with (
            caplog.at_level(logging.INFO, "gpulint.memory"),
            pytest.raises(KeyError),
            memory.monitor("x") as window,
        ):
            raise KeyError("a")
        assert window.error == "KeyError"
        assert "ended by KeyError" in caplog.messages[0]


# -- what is still alive is told by holder, with what graphs pin ---------------------------------------------


def test_equal_rows_are_one_and_do_not_hide_what_pins_more() -> None:
    model = torch.nn.Sequential(*(torch.nn.Linear(200, 200) for _ in range(8)))
    optimizer = torch.optim.Adam(model.parameters())
    curve = []
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.randn(64, 200)).mean().backward()
        optimizer.step()
        curve.append(model(torch.randn(1500, 200)).square().mean())  # each pins all of its activations
    found = {one.holder: one for one in held("cpu", 50)}
    names = list(found)
    losses = next(name for name in names if name.startswith("list `curve`"))
    state = next(name for name in names if "state of optimizer `Adam`" in name)
    assert names.index(losses) < names.index(state)
    assert found[losses].bytes + found[losses].pinned > 4 * 8 * 1500 * 200 * 4
    assert found[state].tensors >= 3 * 2 * 8  # two moments and a count for each weight and bias
    assert not names[0].endswith("tensors")
    assert curve[0].grad_fn is not None  # and looking has freed nothing


def test_a_freed_graph_pins_nothing() -> None:
    weight = torch.randn(400, 400, requires_grad=True)
    kept = [(weight @ weight).sum()]
    kept[0].backward()
    (found,) = (one for one in held("cpu", 50) if one.holder.startswith("list `kept`"))
    assert found.pinned == 0
    assert found.bytes < 1000


def test_clear_shows_the_groups() -> None:
    shown = str(Cleared(3, holders=(Held("list `curve` in `train()`, train.py:3", 16, 8192, 64 << 20),)))
    assert "8.00 KiB in 16 tensors, and 64.00 MiB in autograd graphs: held by list `curve`" in shown
