"""The recorded allocations under other settings: as a program that ran under those would have had it."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import MIB, varied
from torch_layout import Program

from gpulint.allocator.cards import MEMORY, memory_of
from gpulint.snapshot.reading import read
from gpulint.snapshot.recording import Recording
from gpulint.snapshot.whatif import SENSIBLE, what_if

STEP = ("/home/me/train.py", 9, "step")


def recorded(program: Program, folder: Path) -> Recording:
    return read(program.dump(folder / "run.pickle"))


def run_under(settings: str) -> Program:
    program = Program(settings)
    varied(program)
    return program


@pytest.mark.parametrize("recorded_under", ["", "expandable_segments:True", "max_split_size_mb:128"])
def test_a_whole_trace_says_what_each_setting_would_reserve(tmp_path: Path, recorded_under: str) -> None:
    found = what_if(recorded(run_under(recorded_under), tmp_path), 0, SENSIBLE)
    assert (found.error, found.recorded, found.doubts) == (0, recorded_under, ())
    assert {one.setting for one in found.outcomes} == set(SENSIBLE)
    for one in found.outcomes:
        model = run_under(one.setting).model
        assert (one.peak_reserved, one.peak_allocated, one.end_reserved) == (
            model.peak_reserved,
            model.peak_allocated,
            model.reserved,
        ), one.setting
    reserved = [one.peak_reserved for one in found.outcomes]
    assert reserved == sorted(reserved)


@pytest.mark.parametrize("settings", ["", "expandable_segments:True"])
@pytest.mark.parametrize("entries", [50, 300, 700, 2000])
def test_a_trace_that_begins_in_the_middle_goes_on_as_it_lay(
    tmp_path: Path, settings: str, entries: int
) -> None:
    program = Program(settings, entries=entries)
    varied(program)
    recording = recorded(program, tmp_path)
    found = what_if(recording, 0, ["", "expandable_segments:True"])
    assert found.as_recorded.end_reserved == program.model.reserved
    assert abs(found.error) < 0.03
    assert any("older than the trace" in doubt for doubt in found.doubts)


def test_emptied_caches_are_played_and_retries_are_not(tmp_path: Path) -> None:
    """An empty_cache is the program's own, whatever the settings; segments given back to serve a request are not."""
    program = Program(capacity=100 * MIB)
    program.free(program.malloc(60 * MIB, STEP))
    program.malloc(70 * MIB, STEP)  # gives the 60 MiB back first
    recording = recorded(program, tmp_path)
    assert program.model.retries == 1
    [roomy] = what_if(recording, 0, [""], capacity=1 << 40).outcomes
    assert (roomy.peak_reserved, roomy.retries) == (130 * MIB, 0)
    found = what_if(recording, 0, [""])
    assert (found.inferred, found.error) == (True, 0)
    assert found.capacity == 130 * MIB - 1  # that much more, and nothing would have been given back
    [tight] = found.outcomes
    assert (tight.peak_reserved, tight.retries, tight.fits) == (70 * MIB, 1, True)
    other = Program()
    other.free(other.malloc(60 * MIB, STEP))
    other.empty_cache()
    other.malloc(70 * MIB, STEP)
    [emptied] = what_if(recorded(other, tmp_path), 0, [""]).outcomes
    assert emptied.peak_reserved == 70 * MIB


def fragmented() -> Program:
    """150 MiB would be there, in pieces too small for one that needs 100."""
    program = Program(capacity=200 * MIB)
    got = [program.malloc(8 * MIB, STEP) for _ in range(20)]
    for address in got[::2]:
        program.free(address)
    with pytest.raises(MemoryError):
        program.malloc(70 * MIB, STEP)
    return program


def test_whether_what_failed_would_fit(tmp_path: Path) -> None:
    recording = recorded(fragmented(), tmp_path)
    found = what_if(recording, 0, ["", "expandable_segments:True"])
    assert found.capacity == 200 * MIB
    assert {one.setting: one.failed for one in found.outcomes} == {
        "": 70 * MIB,
        "expandable_segments:True": 70 * MIB,
    }


def test_other_cards(tmp_path: Path) -> None:
    program = Program()
    program.malloc(30 << 30, STEP)
    recording = recorded(program, tmp_path)
    small, large = memory_of("RTX 4090"), memory_of("NVIDIA A100-40GB")
    assert small is not None
    assert large is not None
    assert not what_if(recording, 0, [""], capacity=small).outcomes[0].fits
    assert what_if(recording, 0, [""], capacity=large).outcomes[0].fits
    assert memory_of("GTX 260") is None
    assert all(memory_of(card.lower()) for card in MEMORY)


def test_what_cannot_be_played_is_said(tmp_path: Path) -> None:
    found = what_if(recorded(run_under(""), tmp_path), 0, ["garbage_collection_threshold:0.5"])
    assert any("garbage_collection_threshold: played as if not given" in doubt for doubt in found.doubts)
