"""Snapshots that torch 2.11 wrote on an H200 (`benchmarks/snapshots.py` at 6e820c54): read, held to torch's own figures, and the tests' own
writer held to their layout. File names in them are changed."""

import gzip
import json
import pickle
import random
from pathlib import Path
from typing import Any

import pytest
from test_reading import agrees
from torch_layout import Program, varied

from gpulint.allocator import Allocator
from gpulint.snapshot.reading import read
from gpulint.snapshot.recording import Lines
from gpulint.snapshot.usage import Usage, usage_of
from gpulint.snapshot.whatif import SENSIBLE, what_if

HERE = Path(__file__).parent
[RESULTS] = sorted((HERE.parents[1] / "benchmarks" / "results").glob("snapshots-nvidia-*.json"))
NAMES = sorted(path.name.removesuffix(".pickle.gz") for path in (HERE / "real").iterdir())


def path_of(name: str) -> Path:
    return HERE / "real" / f"{name}.pickle.gz"


def written(name: str) -> dict[str, Any]:
    return pickle.loads(gzip.decompress(path_of(name).read_bytes()))


def usage(name: str) -> Usage:
    recording = read(path_of(name))
    return usage_of(recording, 0, Lines(recording))


@pytest.mark.parametrize("name", NAMES)
def test_all_of_it_is_read(name: str) -> None:
    recording = read(path_of(name))
    agrees(recording, written(name))
    assert recording.settings["expandable_segments"] is (name == "expandable")


@pytest.mark.parametrize("name", NAMES)
def test_the_figures_are_those_of_memory_stats(name: str) -> None:
    """`torch.cuda.memory_stats()` of the process, read when the snapshot was taken."""
    torch = json.loads(RESULTS.read_text())["kept"][name]
    found = usage(name)
    assert (found.end_allocated, found.end_reserved) == (torch["allocated"], torch["reserved"])
    assert found.peak_reserved == torch["peak_reserved"]
    assert found.peak_allocated == sum(share.bytes for share in found.at_peak)
    assert found.end_allocated == sum(share.bytes for share in found.at_end)
    assert max(point.allocated for point in found.timeline) == found.peak_allocated
    assert max(point.reserved for point in found.timeline) == found.peak_reserved
    unsplit = torch["peak_allocated"] - found.peak_allocated  # blocks that were given out whole
    assert 0 <= unsplit <= 0.005 * torch["peak_allocated"]
    assert (unsplit == 0) or name == "ring"


@pytest.mark.parametrize("name", NAMES)
def test_the_model_reserves_what_the_gpu_did(name: str) -> None:
    found = what_if(read(path_of(name)), 0, SENSIBLE)
    assert found.error == 0
    assert found.as_recorded.end_reserved == usage(name).end_reserved


def test_the_lines_are_those_of_the_program() -> None:
    shares = {str(share.line) or share.line.kind: share.bytes for share in usage("default").at_peak}
    assert shares["/home/me/_snapshot_child.py:116 small"] == 36177408
    assert shares["unknown"] > 33 << 20  # of the backward: torch has no Python stack there
    with_cpp = {str(share.line): share.line.kind for share in usage("cpp").at_peak}
    assert with_cpp[":0 AddmmBackward0"] == "node"


def test_a_private_pool_is_named() -> None:
    assert any("private memory pool" in doubt for doubt in what_if(read(path_of("graphs")), 0, [""]).doubts)


def test_what_the_ring_leaves_open_covers_what_was_measured() -> None:
    """The ring is the end of a run of `validation`, which was also run under each of the settings."""
    real = {
        row["setting"]: row["real_reserved"]
        for row in json.loads(RESULTS.read_text())["predictions"]
        if row["workload"] == "validation"
    }
    found = what_if(read(path_of("ring")), 0, SENSIBLE)
    for one in found.outcomes:
        # max_split_size_mb:128 reserves more and more: it is further on at the beginning of the ring than this recording is
        if one.setting != "max_split_size_mb:128":
            assert abs(one.peak_reserved - real[one.setting]) <= one.unsure + 0.05 * real[one.setting], one


def _growing_caches(settings: str) -> Allocator:
    """What `fragmentation` in benchmarks/_snapshot_child.py (at 6e820c54) allocates and frees."""
    model, chance = Allocator(settings), random.Random(1)
    caches: list[tuple[int, int] | None] = [None] * 24
    for number in range(300):
        slot = chance.randrange(24)
        old, size = caches[slot], chance.randrange(1, 48) << 18
        new = (model.malloc(4 * size), size)
        if old is None or old[1] > 96 << 20:
            caches[slot] = new
        else:
            caches[slot] = (model.malloc(4 * (old[1] + size)), old[1] + size)
        if old is not None:
            model.free(old[0])
        if caches[slot] is not new:
            model.free(new[0])
        if number % 10 == 0:
            model.malloc(chance.randrange(1, 3 << 20))
    return model


@pytest.mark.parametrize("settings", SENSIBLE)
def test_the_order_of_addresses_is_the_drivers(settings: str) -> None:
    """To the byte, under every setting; with segments one above the other it is up to 3.4 % off under three of them."""
    rows = json.loads(RESULTS.read_text())["predictions"]
    real = next(row for row in rows if (row["workload"], row["setting"]) == ("fragmentation", settings))
    model = _growing_caches(settings)
    assert (model.peak_reserved, model.peak_allocated) == (real["real_reserved"], real["real_allocated"])


def test_the_ring_begins_in_the_middle() -> None:
    found = usage("ring")
    assert found.events == 3000
    assert 0 < found.older < found.peak_allocated


class TestTheWriterOfTheTests:
    """It lays out what torch lays out."""

    @pytest.fixture
    def ours(self) -> dict[str, Any]:
        program = Program(pools=False)
        varied(program, 5)
        program.malloc(3 << 20, ("/home/me/train.py", 3, "main"))
        return pickle.loads(pickle.dumps(program.snapshot(), 4))

    def test_the_same_keys_in_the_same_order(self, ours: dict[str, Any]) -> None:
        theirs = written("default")
        assert list(ours) == list(theirs)
        assert list(ours["allocator_settings"]) == list(theirs["allocator_settings"])
        kinds = [(ours["segments"][0], theirs["segments"][0])]
        kinds.append((kinds[0][0]["blocks"][0], kinds[0][1]["blocks"][0]))
        for action in ("alloc", "free_requested", "free_completed", "segment_alloc"):
            kinds.append((_event(ours, action), _event(theirs, action)))
        kinds.append((_event(ours, "alloc")["frames"][0], _event(theirs, "alloc")["frames"][0]))
        for mine, torchs in kinds:
            assert list(mine) == list(torchs)
            assert [type(value) for value in mine.values()] == [type(value) for value in torchs.values()]

    def test_the_same_is_shared(self, ours: dict[str, Any]) -> None:
        for data in (ours, written("default")):
            trace = data["device_traces"][0]
            born = {entry["addr"]: entry for entry in trace if entry["action"] == "alloc"}
            live = [
                block
                for segment in data["segments"]
                for block in segment["blocks"]
                if block["state"] == "active_allocated"
            ]
            assert live
            assert all(block["frames"] is born[block["address"]]["frames"] for block in live)
            asked = [entry for entry in trace if entry["action"] == "free_requested"]
            done = [entry for entry in trace if entry["action"] == "free_completed"]
            assert all(one["frames"] is other["frames"] for one, other in zip(asked, done, strict=True))


def _event(data: dict[str, Any], action: str) -> dict[str, Any]:
    return next(
        entry for entry in data["device_traces"][0] if entry["action"] == action and entry.get("frames")
    )
