"""Snapshots that torch 2.11 wrote on an H200 (`benchmarks/snapshots.py`): read, held to torch's own figures, and the tests' own
writer held to their layout. File names in them are changed."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from programs import varied
from test_reading import agrees
from torch_layout import Program

from gpulint.snapshot.lines import Lines
from gpulint.snapshot.reading import read
from gpulint.snapshot.usage import Usage, usage_of
from gpulint.snapshot.whatif import SENSIBLE, what_if

HERE = Path(__file__).parent
[RESULTS] = sorted((HERE.parents[1] / "benchmarks" / "results").glob("snapshots-nvidia-*.json"))
NAMES = sorted(path.name.removesuffix(".pickle.gz") for path in (HERE / "real").iterdir())


def path_of(name: str) -> Path:
    return HERE / "real" / f"{name}.pickle.gz"


def written(name: str) -> dict[str, Any]:
    data: dict[str, Any] = pickle.loads(gzip.decompress(path_of(name).read_bytes()))
    return data


def usage(name: str) -> Usage:
    recording = read(path_of(name))
    return usage_of(recording, 0, Lines(recording))


@pytest.mark.parametrize("name", NAMES)
def test_all_of_it_is_read(name: str) -> None:
    agrees(read(path_of(name)), written(name))


@pytest.mark.parametrize("name", NAMES)
def test_the_figures_are_those_of_memory_stats(name: str) -> None:
    """`torch.cuda.memory_stats()` of the process, read when the snapshot was taken."""
    torch = json.loads(RESULTS.read_text())["kept"][name]
    found = usage(name)
    assert (found.end_allocated, found.end_reserved) == (torch["allocated"], torch["reserved"])
    assert found.peak_reserved == torch["peak_reserved"]
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
        data: dict[str, Any] = pickle.loads(pickle.dumps(program.snapshot(), 4))
        return data

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
    found: dict[str, Any] = next(
        entry for entry in data["device_traces"][0] if entry["action"] == action and entry.get("frames")
    )
    return found
