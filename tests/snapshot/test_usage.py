"""What is said of a snapshot is what the allocator that made it says itself, and what it would have been under other settings."""

from pathlib import Path

import pytest
from torch_layout import MIB, Program, varied

from gpulint.allocator.cards import MEMORY, memory_of
from gpulint.snapshot import Asked, difference_between, fragmentation_of, summary_of
from gpulint.snapshot.reading import read
from gpulint.snapshot.recording import BEFORE, Frame, Line, Lines, Recording, is_users
from gpulint.snapshot.usage import Usage, usage_of
from gpulint.snapshot.whatif import SENSIBLE, what_if

LOAD = ("/home/me/train.py", 5, "load")
STEP = ("/home/me/train.py", 9, "step")
TORCH = ("/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py", 125, "forward")


def recorded(program: Program, folder: Path, name: str = "run") -> Recording:
    return read(program.dump(folder / f"{name}.pickle"))


def usage(recording: Recording, depth: int = 1) -> Usage:
    return usage_of(recording, 0, Lines(recording, depth))


def shares(found: tuple[object, ...]) -> dict[str, tuple[int, int]]:
    return {str(share.line) or share.line.kind: (share.bytes, share.blocks) for share in found}  # type: ignore[attr-defined]


@pytest.mark.parametrize("settings", ["", "expandable_segments:True"])
def test_a_trace_that_begins_in_the_middle(tmp_path: Path, settings: str) -> None:
    """The figures at its beginning are worked out from its end, and agree with those of the whole trace there."""
    whole, ring = Program(settings), Program(settings, entries=700)
    varied(whole)
    varied(ring)
    all_of_it, last = usage(recorded(whole, tmp_path)), usage(recorded(ring, tmp_path, "ring"))
    assert (last.end_allocated, last.end_reserved) == (all_of_it.end_allocated, all_of_it.end_reserved)
    assert last.events == 700
    assert last.start_reserved > 0
    assert 0 < last.older <= last.start_allocated
    assert last.peak_allocated <= all_of_it.peak_allocated
    assert last.peak_allocated == sum(share.bytes for share in last.at_peak)


def test_the_peak_by_line(tmp_path: Path) -> None:
    program = Program()
    program.malloc(30 * MIB, TORCH, LOAD)
    batch = [program.malloc(40 * MIB, TORCH, STEP) for _ in range(3)]
    for address in batch:
        program.free(address)
    program.malloc(512)
    found = usage(recorded(program, tmp_path))
    assert shares(found.at_peak) == {
        "/home/me/train.py:9 step": (120 * MIB, 3),
        "/home/me/train.py:5 load": (30 * MIB, 1),
    }
    assert shares(found.at_end) == {"/home/me/train.py:5 load": (30 * MIB, 1), "unknown": (512, 1)}
    assert found.peak_at == 8  # four segments, four blocks
    whole = usage(recorded(program, tmp_path), depth=0).at_peak[0].line
    assert [frame.name for frame in whole.frames] == ["forward", "step"]


def test_what_is_older_than_the_trace(tmp_path: Path) -> None:
    """What is still there at the end has its stack, where torch recorded it; what went during the trace has none."""
    program = Program(entries=3)
    program.malloc(3 * MIB, LOAD)
    program.recording = False
    gone = program.malloc(10 * MIB, LOAD)
    program.malloc(20 * MIB, LOAD)
    program.recording = True
    program.malloc(5 * MIB, STEP)
    program.free(gone, STEP)
    found = usage(recorded(program, tmp_path))
    assert found.start_allocated == 33 * MIB
    assert shares(found.at_peak) == {
        "older": (30 * MIB, 2),
        "/home/me/train.py:5 load": (3 * MIB, 1),
        "/home/me/train.py:9 step": (5 * MIB, 1),
    }
    assert found.older == 33 * MIB
    assert BEFORE in [share.line for share in found.at_peak]


def test_out_of_memory_with_what_was_in_use(tmp_path: Path) -> None:
    program = Program(capacity=100 * MIB)
    program.malloc(60 * MIB, LOAD)
    with pytest.raises(MemoryError):
        program.malloc(50 * MIB, STEP)
    [oom] = usage(recorded(program, tmp_path)).ooms
    assert (oom.asked, oom.free, oom.allocated, oom.reserved) == (50 * MIB, 40 * MIB, 60 * MIB, 60 * MIB)
    assert str(oom.line) == "/home/me/train.py:9 step"


def test_a_small_block_that_pins_a_segment(tmp_path: Path) -> None:
    program = Program()
    large = program.malloc(9 * MIB, STEP)
    program.malloc(2 * MIB, LOAD)
    idle = program.malloc(40 * MIB, STEP)
    program.free(large)
    program.free(idle)
    recording = recorded(program, tmp_path)
    found = fragmentation_of(recording, 0, Lines(recording))
    assert (found.reserved, found.allocated, found.whole, found.split) == (
        60 * MIB,
        2 * MIB,
        40 * MIB,
        18 * MIB,
    )
    assert found.largest_free == 40 * MIB
    [pin] = found.pins
    assert (str(pin.line), pin.bytes, pin.segments, pin.free) == (
        "/home/me/train.py:5 load",
        2 * MIB,
        1,
        18 * MIB,
    )
    assert [(one.size, one.free, one.largest_free) for one in found.held] == [(20 * MIB, 18 * MIB, 9 * MIB)]


def test_what_grew(tmp_path: Path) -> None:
    program = Program()
    shrinks = [program.malloc(MIB, LOAD) for _ in range(3)]
    before = summary_of(recorded(program, tmp_path), "before", Asked())
    kept = [program.malloc(5 * MIB, STEP) for _ in range(4)]
    program.free(shrinks[0])
    after = summary_of(recorded(program, tmp_path, "after"), "after", Asked())
    [growth] = difference_between(before, after).devices
    assert [(str(one.line), one.grown, one.blocks_after - one.blocks_before) for one in growth.changes] == [
        ("/home/me/train.py:9 step", 20 * MIB, len(kept)),
        ("/home/me/train.py:5 load", -MIB, -1),
    ]
    assert growth.allocated_after - growth.allocated_before == 19 * MIB
    assert difference_between(after, after).devices[0].changes == ()


@pytest.mark.parametrize(
    ("file", "users"),
    [
        ("/home/me/train.py", True),
        ("/home/me/torch/train.py", True),
        ("C:\\work\\train.py", True),
        ("/tmp/ipykernel_312/4021.py", True),
        ("<ipython-input-3-abc>", True),
        ("/venv/lib/python3.12/site-packages/torch/nn/functional.py", False),
        ("/usr/lib/python3/dist-packages/numpy/x.py", False),
        ("/usr/lib/python3.11/threading.py", False),
        ("/opt/conda/lib/python3.10/contextlib.py", False),
        ("/src/pytorch/torch/nn/modules/module.py", False),
        ("/tmp/torchinductor_root/ab/cab.py", False),
        ("<frozen runpy>", False),
        ("/build/aten/src/ATen/native/TensorFactories.cpp", False),
        ("??", False),
    ],
)
def test_which_files_are_the_programs_own(file: str, users: bool) -> None:
    assert is_users(Frame(file, 1, "f")) is users


def test_a_line_of_a_library_where_there_is_no_other(tmp_path: Path) -> None:
    program = Program()
    program.malloc(
        512, ("/src/Allocator.cpp", 3, "malloc"), TORCH, ("/usr/lib/python3.12/threading.py", 1, "run")
    )
    [share] = usage(recorded(program, tmp_path)).at_end
    assert share.line == Line((Frame(*TORCH),), "library")


# -- the recorded allocations under other settings: as a program that ran under those would have had it ------


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
