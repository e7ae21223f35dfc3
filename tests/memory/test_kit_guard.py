"""oom_guard with real out-of-memory errors of the CPU allocator; errors that let go of what their frames hold."""

import logging
import sys
import traceback
import weakref
from typing import Any

import pytest
import torch

from gpulint import memory
from gpulint.memory import errors
from gpulint.memory import guard as guard_module
from gpulint.memory.guard import is_oom
from gpulint.operator.oom_log import read_log

TOO_MUCH = 1 << 50
MIB = 1024**2


class Activation:
    """Stands for a tensor of the failed step: weakly referable, so that its death can be seen."""


def step(batch_size: int, sizes: list[int], fits: int = 16) -> int:
    sizes.append(batch_size)
    if batch_size > fits:
        torch.empty(TOO_MUCH, dtype=torch.uint8)
    return batch_size


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (torch.OutOfMemoryError("anything"), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."), True),
        (RuntimeError("MPS backend out of memory (MPS allocated: 17 GiB). Tried to allocate 1 GiB"), True),
        (RuntimeError("shape mismatch"), False),
        (ValueError("CUDA out of memory"), False),
        (MemoryError(), False),
    ],
)
def test_which_errors_say_that_memory_ran_out(error: BaseException, is_one: bool) -> None:
    assert is_oom(error) is is_one


class TestRetry:
    def test_halves_until_it_fits_stays_there_and_explains_once(self, caplog) -> None:
        sizes: list[int] = []

        @memory.oom_guard(retry="halve")
        def train(batch_size: int) -> int:
            return step(batch_size, sizes)

        assert [train(batch_size=64), train(batch_size=64), train(batch_size=8)] == [16, 16, 8]
        assert sizes == [64, 32, 16, 16, 8]
        explained, retried, again = caplog.messages
        assert "what to try" in explained
        assert retried == "trying again with batch_size=32"
        assert again.startswith("out of memory again in ")
        assert again.endswith("requested 1.00 PiB; trying again with batch_size=16")
        (found,) = read_log("\n".join(caplog.messages).splitlines()).occurrences
        assert (found.diagnosis.kind, found.times) == ("host", 2)

    def test_finds_the_size_wherever_it_is(self) -> None:
        sizes: list[int] = []

        def train(data: Any, batch_size: int = 32) -> int:
            return step(batch_size, sizes)

        def other(n: int) -> int:
            return step(n, sizes)

        for given in ((train, None, 32), (train, None), (other, 32)):
            assert memory.oom_guard(retry="halve").run(*given) == 16
        assert memory.oom_guard(retry="halve").run(train, data=None, batch_size=32) == 16
        assert sizes == [32, 16] * 4
        with pytest.raises(TypeError, match="needs an integer parameter 'batch_size'"):
            memory.oom_guard(retry="halve").run(lambda batch: None, [1, 2])

    def test_gives_up_at_the_minimum_or_after_so_many_attempts(self) -> None:
        sizes: list[int] = []
        guard = memory.oom_guard(retry="halve", minimum=4)
        with pytest.raises(RuntimeError, match="DefaultCPUAllocator"):
            guard.run(step, 16, sizes, fits=0)
        with pytest.raises(RuntimeError):
            memory.oom_guard(retry=2).run(step, 99, sizes)
        assert sizes == [16, 8, 4, 99, 99, 99]
        assert len(guard.events) == 3

    def test_other_errors_are_not_ours(self) -> None:
        calls: list[int] = []

        def broken() -> None:
            calls.append(1)
            raise ValueError("shapes")

        guard = memory.oom_guard(retry=5, reraise=False)
        with pytest.raises(ValueError, match="shapes"):
            guard.run(broken)
        assert len(calls) == 1
        assert guard.last is None

    def test_what_cannot_be_guarded_is_refused(self) -> None:
        async def train() -> None: ...

        def steps():
            yield 1

        for function in (train, steps):
            with pytest.raises(TypeError, match="into its body"):
                memory.oom_guard()(function)
        with pytest.raises(TypeError, match="decorator"), memory.oom_guard(retry=1):
            pass
        for retry in (-1, "half", 1.5):
            with pytest.raises(ValueError, match="retry must be"):
                memory.oom_guard(retry=retry)


class TestLettingGo:
    """The frames of the failed step must be over and empty before cleaning begins."""

    @pytest.fixture
    def held(self) -> list[weakref.ref[Activation]]:
        return []

    @pytest.fixture
    def failing(self, held):
        def failing() -> None:
            activation = Activation()
            held.append(weakref.ref(activation))
            torch.empty(TOO_MUCH, dtype=torch.uint8)

        return failing

    def test_tensors_of_the_failed_step_are_dead_when_the_cleaning_starts(
        self, held, failing, monkeypatch
    ) -> None:
        def outer() -> None:
            other = Activation()
            held.append(weakref.ref(other))
            failing()

        seen: list[Any] = []
        clear = guard_module.clear
        monkeypatch.setattr(guard_module, "clear", lambda: (seen.append([ref() for ref in held]), clear())[1])
        memory.oom_guard(reraise=False).run(outer)
        assert seen == [[None, None]]

    def test_an_error_that_goes_on_holds_none_either_nor_does_its_cause(self, held, failing) -> None:
        def inner() -> None:
            try:
                failing()
            except RuntimeError as error:
                raise RuntimeError("CUDA out of memory. Tried to allocate 1.00 GiB.") from error

        with pytest.raises(RuntimeError) as caught:
            memory.oom_guard().run(inner)
        assert held[0]() is None
        assert isinstance(caught.value.__cause__, RuntimeError)
        assert "inner" in [entry.name for entry in caught.traceback]

    def test_nor_what_a_block_has_called(self, held, failing) -> None:
        with memory.oom_guard(reraise=False):
            failing()
        assert held[0]() is None


class TestWith:
    def test_reraises_with_a_note(self, caplog) -> None:
        guard = memory.oom_guard()
        with pytest.raises(RuntimeError) as caught, guard:
            torch.empty(TOO_MUCH, dtype=torch.uint8)
        assert guard.last.diagnosis.kind == "host"
        assert any("host's memory" in note for note in getattr(caught.value, "__notes__", ["host's memory"]))
        assert "what to try" in caplog.text

    def test_swallows_and_explains_each_line_once(self, caplog) -> None:
        inner, outer = memory.oom_guard(), memory.oom_guard(reraise=False)
        with outer, inner:
            torch.empty(TOO_MUCH, dtype=torch.uint8)
        assert len(inner.events) == len(outer.events) == 1
        assert "test_kit_guard.py" in outer.events[0].where
        assert caplog.text.count("what to try") == 1
        with outer:
            torch.empty(TOO_MUCH, dtype=torch.uint8)
        assert caplog.text.count("what to try") == 2

    def test_logs_at_the_level_asked_for(self, caplog) -> None:
        guard = memory.oom_guard(reraise=False, level=logging.DEBUG)
        with caplog.at_level(logging.DEBUG, "gpulint.memory"):
            assert guard.run(step, 99, []) is None
        assert guard.last is not None
        assert caplog.records[-1].levelno == logging.DEBUG


class TestTrouble:
    """Whatever goes wrong while recovering, the error at hand is the one that is seen, and a retry is made."""

    def test_a_snapshot_that_cannot_be_written(self, cuda, tmp_path, monkeypatch, caplog) -> None:
        monkeypatch.setattr(torch.cuda.memory, "_snapshot", lambda: {"segments": []})
        sizes: list[int] = []
        guard = memory.oom_guard(retry="halve", snapshot=tmp_path / "no" / "such" / "folder.pickle")
        assert guard.run(step, 32, sizes) == 16
        assert guard.last.snapshot is None
        assert "no snapshot could be written" in caplog.text

    def test_a_driver_that_does_not_answer(self, cuda, monkeypatch) -> None:
        def broken(*_: Any) -> None:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

        for name in ("memory_stats", "empty_cache", "synchronize"):
            monkeypatch.setattr(torch.cuda, name, broken)

        def broken_step() -> None:
            raise RuntimeError("CUDA out of memory. Tried to allocate 1.00 GiB.")

        guard = memory.oom_guard()
        with pytest.raises(RuntimeError, match="CUDA out of memory"):
            guard.run(broken_step)
        assert "does not answer" in guard.last.before.missing
        assert "does not answer" in guard.last.cleared.missing


class TestDiagnosisOfTheEvent:
    def test_figures_that_the_message_lacks_come_from_the_allocator(self, cuda, caplog) -> None:
        kept = [cuda.alloc(4 * MIB) for _ in range(1000)]
        for address in kept[::2]:
            cuda.free(address)
        guard = memory.oom_guard(reraise=False)
        cuda.model.capacity = cuda.model.reserved  # another process took the rest
        with guard:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1.00 GiB.")
        assert guard.last.before.allocated == 2000 * MIB
        assert "allocated 1.95 GiB -> 1.95 GiB" in caplog.text  # the list still holds it, and it says so
        assert guard.last.diagnosis.kind == "other-processes"
        assert guard.last.diagnosis.message.allocated == 2000 * MIB


# -- errors let go of what their frames hold -----------------------------------------------------------------


class Big:
    pass


def failing(seen: list[Any]) -> None:
    big = Big()
    seen.append(weakref.ref(big))
    raise ValueError("no")


def caught(seen: list[Any], cause: bool = False) -> BaseException:
    try:
        failing(seen)
    except ValueError as error:
        if not cause:
            return error
        try:
            raise KeyError("later") from error
        except KeyError as later:
            return later
    raise AssertionError


@pytest.mark.parametrize("cause", [False, True])
def test_frames_whose_variables_were_read(cause: bool) -> None:
    seen: list[Any] = []
    error = caught(seen, cause)
    for one in errors.chain_of(error):
        for frame, _ in traceback.walk_tb(one.__traceback__):
            assert "seen" in frame.f_locals  # as IPython does; up to Python 3.12 it leaves a dict behind
    del frame
    assert seen[0]() is not None
    errors.empty_frames(error)
    assert seen[0]() is None
    assert "ValueError: no" in "".join(traceback.format_exception(error))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="no exception groups")
def test_members_of_a_group() -> None:
    seen: list[Any] = []
    group = ExceptionGroup("several", [caught(seen), caught(seen)])  # noqa: F821
    errors.empty_frames(group)
    assert [ref() for ref in seen] == [None, None]
