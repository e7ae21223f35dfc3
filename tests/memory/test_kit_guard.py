"""oom_guard with real out-of-memory errors of the CPU allocator, and with the GPU's where there is one."""

from __future__ import annotations

import gc
import logging
import pickle
import weakref
from typing import Any

import pytest
import torch

from gpulint import memory
from gpulint.memory.guard import is_oom
from gpulint.operator.oom_log import read_log

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
TOO_MUCH = 1 << 50
MIB = 1024**2


class Activation:
    """Stands for a tensor of the failed step: weakly referable, so that its death can be seen."""


def step(batch_size: int, sizes: list[int], fits: int = 16) -> int:
    sizes.append(batch_size)
    if batch_size > fits:
        torch.empty(TOO_MUCH, dtype=torch.uint8)
    return batch_size


class TestIsOom:
    @pytest.mark.parametrize(
        "error",
        [
            torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
            torch.OutOfMemoryError("anything"),
            RuntimeError("CUDA error: out of memory"),
            RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
            RuntimeError(
                "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."
            ),
        ],
    )
    def test_yes(self, error) -> None:
        assert is_oom(error)

    @pytest.mark.parametrize(
        "error",
        [
            RuntimeError("shape mismatch"),
            ValueError("CUDA out of memory"),
            MemoryError(),
            KeyboardInterrupt(),
        ],
    )
    def test_no(self, error) -> None:
        assert not is_oom(error)


class TestRetry:
    def test_halves_until_it_fits_and_stays_there(self, caplog) -> None:
        sizes: list[int] = []

        @memory.oom_guard(retry="halve")
        def train(batch_size: int) -> int:
            return step(batch_size, sizes)

        assert train(batch_size=64) == 16
        assert train(batch_size=64) == 16
        assert sizes == [64, 32, 16, 16]
        assert train(batch_size=8) == 8

    def test_explains_once_and_then_takes_a_line(self, caplog) -> None:
        @memory.oom_guard(retry="halve")
        def train(batch_size: int) -> int:
            return step(batch_size, [])

        train(batch_size=64)
        explained, retried, again = [record.getMessage() for record in caplog.records]
        assert "what to try" in explained
        assert retried == "trying again with batch_size=32"
        assert again.startswith("out of memory again in ")
        assert again.endswith("requested 1.00 PiB; trying again with batch_size=16")
        (found,) = read_log(
            "\n".join(record.getMessage() for record in caplog.records).splitlines()
        ).occurrences
        assert (found.diagnosis.kind, found.times) == ("host", 2)

    def test_another_line_is_explained_anew(self, caplog) -> None:
        guard = memory.oom_guard(reraise=False)
        with guard:
            torch.empty(TOO_MUCH, dtype=torch.uint8)
        with guard:
            torch.empty(TOO_MUCH, dtype=torch.uint8)
        assert caplog.text.count("what to try") == 2

    def test_metals_out_of_memory_is_one_like_the_others(self, caplog) -> None:
        tried = []

        @memory.oom_guard(retry="halve")
        def train(batch_size: int) -> int:
            tried.append(batch_size)
            if batch_size > 8:
                raise RuntimeError(
                    "MPS backend out of memory (MPS allocated: 17.20 GiB, other allocations: 412.00 MiB, max allowed: 18.13"
                    " GiB). Tried to allocate 1.50 GiB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable"
                    " upper limit for memory allocations (may cause system failure)."
                )
            return batch_size

        assert train(batch_size=16) == 8
        assert tried == [16, 8]
        assert "capacity" in caplog.text
        assert "PYTORCH_MPS_HIGH_WATERMARK_RATIO" in caplog.text

    @pytest.mark.parametrize("call", ["positional", "keyword", "default", "other-name"])
    def test_finds_the_size_wherever_it_is(self, call) -> None:
        sizes: list[int] = []

        def train(data: Any, batch_size: int = 32) -> int:
            return step(batch_size, sizes)

        def other(n: int) -> int:
            return step(n, sizes)

        run = memory.oom_guard(retry="halve").run
        made = {
            "positional": lambda: run(train, None, 32),
            "keyword": lambda: run(train, data=None, batch_size=32),
            "default": lambda: run(train, None),
            "other-name": lambda: run(other, 32),
        }[call]()
        assert made == 16
        assert sizes == [32, 16]

    def test_gives_up_at_the_minimum(self) -> None:
        sizes: list[int] = []
        guard = memory.oom_guard(retry="halve", minimum=4)
        with pytest.raises(RuntimeError, match="DefaultCPUAllocator"):
            guard.run(step, 16, sizes, fits=0)
        assert sizes == [16, 8, 4]
        assert len(guard.events) == 3

    def test_without_a_size_it_says_what_it_needs(self) -> None:
        with pytest.raises(TypeError, match="needs an integer parameter 'batch_size'"):
            memory.oom_guard(retry="halve").run(lambda batch: None, [1, 2])

    def test_same_arguments_a_number_of_times(self) -> None:
        sizes: list[int] = []
        with pytest.raises(RuntimeError):
            memory.oom_guard(retry=2).run(step, 99, sizes)
        assert sizes == [99, 99, 99]

    def test_other_errors_are_not_ours(self) -> None:
        calls = []

        @memory.oom_guard(retry=5)
        def broken() -> None:
            calls.append(1)
            raise ValueError("shapes")

        with pytest.raises(ValueError, match="shapes"):
            broken()
        assert len(calls) == 1

    def test_swallowed_if_asked(self) -> None:
        guard = memory.oom_guard(reraise=False)
        assert guard.run(step, 99, []) is None
        assert guard.last is not None

    @pytest.mark.parametrize("retry", [-1, "half", 1.5])
    def test_wrong_retry(self, retry) -> None:
        with pytest.raises(ValueError, match="retry must be"):
            memory.oom_guard(retry=retry)


class TestLettingGo:
    """The frames of the failed step must be over and empty before cleaning begins."""

    def test_tensors_of_the_failed_step_are_dead_when_the_cleaning_starts(self, monkeypatch) -> None:
        seen: list[Any] = []
        held: list[weakref.ref[Activation]] = []

        def deep() -> None:
            activation = Activation()
            held.append(weakref.ref(activation))
            torch.empty(TOO_MUCH, dtype=torch.uint8)

        def failing() -> None:
            other = Activation()
            held.append(weakref.ref(other))
            deep()

        from gpulint.memory import guard as module

        clear = module.clear
        monkeypatch.setattr(module, "clear", lambda: (seen.append([ref() for ref in held]), clear())[1])
        memory.oom_guard(reraise=False).run(failing)
        assert seen == [[None, None]]

    def test_recovery_inside_except_would_have_kept_them(self) -> None:
        """What the old helpers did; the reason for all this."""
        held: list[weakref.ref[Activation]] = []

        def failing() -> None:
            activation = Activation()
            held.append(weakref.ref(activation))
            torch.empty(TOO_MUCH, dtype=torch.uint8)

        try:
            failing()
        except RuntimeError:
            gc.collect()
            assert held[0]() is not None
        assert held[0]() is None

    def test_a_reraised_error_holds_none_either_and_keeps_its_traceback(self) -> None:
        held: list[weakref.ref[Activation]] = []

        def failing() -> None:
            activation = Activation()
            held.append(weakref.ref(activation))
            torch.empty(TOO_MUCH, dtype=torch.uint8)

        with pytest.raises(RuntimeError) as caught:
            memory.oom_guard().run(failing)
        assert held[0]() is None
        assert "failing" in [entry.name for entry in caught.traceback]

    def test_the_cause_of_an_error_lets_go_too(self) -> None:
        held: list[weakref.ref[Activation]] = []

        def inner() -> None:
            activation = Activation()
            held.append(weakref.ref(activation))
            raise KeyError("x")

        def failing() -> None:
            try:
                inner()
            except KeyError as error:
                raise RuntimeError("CUDA out of memory. Tried to allocate 1.00 GiB.") from error

        with pytest.raises(RuntimeError) as caught:
            memory.oom_guard().run(failing)
        assert caught.value.__cause__ is not None
        assert held[0]() is None


class TestWith:
    def test_reraises_with_a_note(self, caplog) -> None:
        guard = memory.oom_guard()
        with pytest.raises(RuntimeError) as caught, guard:
            torch.empty(TOO_MUCH, dtype=torch.uint8)
        assert guard.last is not None
        assert guard.last.diagnosis.kind == "host"
        assert any("host's memory" in note for note in getattr(caught.value, "__notes__", ["host's memory"]))
        assert "what to try" in caplog.text

    def test_swallows_and_tells(self) -> None:
        done = []
        with memory.oom_guard(reraise=False) as guard:
            torch.empty(TOO_MUCH, dtype=torch.uint8)
            done.append(1)
        assert guard.last is not None
        assert "test_kit_guard.py" in guard.last.where
        assert not done

    def test_callee_frames_are_emptied(self) -> None:
        held: list[weakref.ref[Activation]] = []

        def failing() -> None:
            activation = Activation()
            held.append(weakref.ref(activation))
            torch.empty(TOO_MUCH, dtype=torch.uint8)

        with memory.oom_guard(reraise=False):
            failing()
        assert held[0]() is None

    def test_other_errors_pass(self) -> None:
        guard = memory.oom_guard(reraise=False)
        with pytest.raises(KeyError), guard:
            raise KeyError("x")
        assert guard.last is None

    def test_a_block_cannot_be_retried(self) -> None:
        with pytest.raises(TypeError, match="decorator"), memory.oom_guard(retry=1):
            pass

    def test_guards_around_each_other_explain_an_error_once(self, caplog) -> None:
        inner, outer = memory.oom_guard(), memory.oom_guard(reraise=False)
        with outer, inner:
            torch.empty(TOO_MUCH, dtype=torch.uint8)
        assert len(inner.events) == len(outer.events) == 1
        assert caplog.text.count("what to try") == 1

    def test_coroutines_and_generators_are_refused(self) -> None:
        async def train() -> None: ...

        def steps():
            yield 1

        for function in (train, steps):
            with pytest.raises(TypeError, match="into its body"):
                memory.oom_guard()(function)


class TestTrouble:
    """Whatever goes wrong while recovering, the error at hand is the one that is seen, and a retry is made."""

    def test_a_snapshot_that_cannot_be_written(self, cuda, tmp_path, monkeypatch, caplog) -> None:
        monkeypatch.setattr(torch.cuda.memory, "_snapshot", lambda: {"segments": []})
        sizes: list[int] = []
        guard = memory.oom_guard(retry="halve", snapshot=tmp_path / "no" / "such" / "folder.pickle")
        assert guard.run(step, 32, sizes) == 16
        assert guard.last is not None
        assert guard.last.snapshot is None
        assert "no snapshot could be written" in caplog.text

    def test_a_driver_that_does_not_answer(self, cuda, monkeypatch) -> None:
        def broken(*_: Any) -> None:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

        for name in ("memory_stats", "empty_cache", "synchronize"):
            monkeypatch.setattr(torch.cuda, name, broken)
        guard = memory.oom_guard()
        with pytest.raises(RuntimeError, match="CUDA out of memory"):
            guard.run(
                lambda: (_ for _ in ()).throw(
                    RuntimeError("CUDA out of memory. Tried to allocate 1.00 GiB.")
                ).__next__()
            )
        assert guard.last is not None
        assert "does not answer" in guard.last.before.missing
        assert "does not answer" in guard.last.cleared.missing


class TestDiagnosisOfTheEvent:
    def test_figures_before_and_after(self, cuda, caplog) -> None:
        def failing() -> None:
            address = cuda.alloc(2048 * MIB)
            try:
                raise torch.OutOfMemoryError(
                    "CUDA out of memory. Tried to allocate 7.00 GiB. GPU 0 has a total capacity of 8.00 GiB of which"
                    " 6.00 GiB is free. Of the allocated memory 2.00 GiB is allocated by PyTorch, and 0 bytes is"
                    " reserved by PyTorch but unallocated."
                )
            finally:
                holder.append(Freeing(cuda, address))

        class Freeing:
            def __init__(self, cuda: Any, address: int) -> None:
                self.cuda, self.address = cuda, address

            def __del__(self) -> None:
                self.cuda.free(self.address)

        holder: list[Any] = []
        guard = memory.oom_guard(reraise=False)
        guard.run(lambda: failing())
        assert guard.last is not None
        assert guard.last.before.allocated == 2048 * MIB
        assert guard.last.diagnosis.kind == "capacity"
        assert "allocated 2.00 GiB -> 2.00 GiB" in caplog.text  # the list still holds it, and it says so
        holder.clear()

    def test_figures_that_the_message_lacks_come_from_the_allocator(self, cuda) -> None:
        kept = [cuda.alloc(4 * MIB) for _ in range(1000)]
        for address in kept[::2]:
            cuda.free(address)
        guard = memory.oom_guard(reraise=False)
        cuda.model.capacity = cuda.model.reserved  # another process took the rest
        with guard:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.00 GiB.")
        assert guard.last is not None
        assert guard.last.diagnosis.kind == "other-processes"
        assert guard.last.diagnosis.message.allocated == 2000 * MIB

    def test_logs_at_the_level_asked_for(self, caplog) -> None:
        with caplog.at_level(logging.DEBUG, "gpulint.memory"):
            memory.oom_guard(reraise=False, level=logging.DEBUG).run(step, 99, [])
        assert caplog.records[-1].levelno == logging.DEBUG


@pytest.mark.gpu
@needs_gpu
class TestOnTheGpu:
    @pytest.fixture(autouse=True)
    def _limit(self):
        memory.clear()
        memory.limit(min(1.0, 3 * 1024**3 / torch.cuda.get_device_properties(0).total_memory))
        yield
        memory.limit(1.0)

    def test_provoked_and_recovered_by_halving(self, tmp_path) -> None:
        guard = memory.oom_guard(retry="halve", snapshot=tmp_path / "oom.pickle")

        @guard
        def train(batch_size: int) -> int:
            layers = []
            for _ in range(4):
                layers.append(torch.zeros(batch_size * 16 * MIB, dtype=torch.uint8, device="cuda"))
            return sum(t.numel() for t in layers) // (64 * MIB)

        assert train(batch_size=128) == 32
        assert len(guard.events) == 2
        assert guard.last is not None
        assert guard.last.freed >= 64 * 16 * MIB
        assert guard.last.diagnosis.kind == "limit"
        with open(tmp_path / "oom.pickle", "rb") as file:
            assert "segments" in pickle.load(file)

    def test_memory_is_free_after_the_guard(self) -> None:
        before = torch.cuda.memory_allocated()

        def failing() -> None:
            held = []
            while True:
                held.append(torch.zeros(256 * MIB, dtype=torch.uint8, device="cuda"))

        with pytest.raises(torch.OutOfMemoryError):
            memory.oom_guard().run(failing)
        assert torch.cuda.memory_allocated() == before
