"""Snapshots are read as they were written, whatever torch wrote them, and what is none is refused in one sentence."""

import gzip
import io
import json
import pickle
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from support import gpulint, run_command
from torch_layout import Program, training, varied

from gpulint.snapshot.reading import NotASnapshot, _Reader, read
from gpulint.snapshot.recording import ACTIONS, Action, Recording, line_of


def agrees(recording: Recording, written: dict[str, Any]) -> None:
    """Holds what was read to Python's own reading of the same."""

    def frames(number: int) -> list[tuple[str, int, str]]:
        return [(one.file, one.line, one.name) for one in recording.stacks[number].frames]

    def written_frames(entry: dict[str, Any]) -> list[tuple[str, int, str]]:
        return [(one["filename"], one["line"], one["name"]) for one in entry.get("frames", ())]

    assert len(recording.segments) == len(written["segments"])
    for segment, given in zip(recording.segments, written["segments"], strict=True):
        assert (segment.address, segment.size, segment.device) == (
            given["address"],
            given["total_size"],
            given["device"],
        )
        assert [(one.address, one.size, one.requested, one.allocated) for one in segment.blocks] == [
            (one["address"], one["size"], one["requested_size"], one["state"] == "active_allocated")
            for one in given["blocks"]
        ]
        assert [frames(one.stack) for one in segment.blocks] == [
            written_frames(one) for one in given["blocks"]
        ]
    assert [len(trace) for trace in recording.traces] == [len(trace) for trace in written["device_traces"]]
    for trace, entries in zip(recording.traces, written["device_traces"], strict=True):
        for (action, address, size, place, stack), time, entry in zip(
            trace, trace.time, entries, strict=True
        ):
            assert action == ACTIONS[entry["action"]]
            assert (address, size) == (entry.get("addr", entry.get("device_free")), entry["size"])
            assert recording.places[place] == (entry["stream"], entry.get("pool_id"))
            assert frames(stack) == written_frames(entry)
            assert time == entry["time_us"]


def test_several_devices_and_no_events_at_all(tmp_path: Path) -> None:
    one, other = Program(), Program(device=2)
    varied(one, 3)
    varied(other, 4, seed=2)
    first, second = one.snapshot(), other.snapshot()
    written = {
        **first,
        "segments": first["segments"] + second["segments"],
        "device_traces": [first["device_traces"][0], [], second["device_traces"][2]],
    }
    path = tmp_path / "run.pickle"
    path.write_bytes(pickle.dumps(written, 4))
    agrees(read(path), written)
    assert read(path).devices() == [0, 2]
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": []}, 4))
    assert read(path).devices() == []


def test_a_stack_deeper_than_pickle_writes_at_once(tmp_path: Path) -> None:
    program = Program()
    program.malloc(512, *((f"/home/me/deep{number}.py", number, "f") for number in range(2500)))
    path = program.dump(tmp_path / "run.pickle")
    agrees(read(path), pickle.loads(path.read_bytes()))


def test_a_packed_one(tmp_path: Path) -> None:
    program = Program()
    varied(program, 5)
    path = program.dump(tmp_path / "run.pickle")
    packed = tmp_path / "run.pickle.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    agrees(read(packed), pickle.loads(path.read_bytes()))
    cut = tmp_path / "cut.pickle.gz"
    cut.write_bytes(packed.read_bytes()[:-200])
    with pytest.raises(NotASnapshot, match=r"cut\.pickle\.gz cannot be unpacked"):
        read(cut)


def _older(written: dict[str, Any]) -> dict[str, Any]:
    """As torch 2.1 wrote it: no pools and no times in the trace, no settings."""
    left = {"time_us", "compile_context", "user_metadata", "pool_id"}
    traces = [[{k: v for k, v in e.items() if k not in left} for e in t] for t in written["device_traces"]]
    return {"segments": written["segments"], "device_traces": traces}


def test_one_of_torch_2_1(tmp_path: Path) -> None:
    program = Program()
    varied(program, 5)
    written = program.snapshot()
    path = tmp_path / "run.pickle"
    path.write_bytes(pickle.dumps(_older(written), 4))
    recording = read(path)
    assert len(recording.traces[0]) == len(written["device_traces"][0])
    assert recording.settings == {}
    assert recording.places == [(0, None)]


def test_the_bare_list_of_segments_and_its_blocks_with_a_history(tmp_path: Path) -> None:
    """What `torch.cuda.memory_snapshot()` gives, as torch 2.0 did: the stack of a block in its history."""
    frames = [{"filename": "/home/me/train.py", "line": 3, "name": "main"}]
    blocks = [
        {
            "size": 1024,
            "state": "active_allocated",
            "history": [{"addr": 4096, "real_size": 1000, "frames": frames}],
        },
        {"size": 2048, "state": "active_pending_free", "requested_size": 2000},
        {"size": 512, "state": "inactive"},
    ]
    segment = {
        "address": 4096,
        "total_size": 3584,
        "segment_type": "small",
        "stream": 0,
        "device": 1,
        "blocks": blocks,
    }
    path = tmp_path / "run.pickle"
    path.write_bytes(pickle.dumps([segment], 4))
    recording = read(path)
    [found] = recording.segments
    assert [(one.address, one.requested, one.allocated, one.pending) for one in found.blocks] == [
        (4096, 1000, True, False),
        (5120, 2000, False, True),
        (7168, 512, False, False),
    ]
    assert str(line_of(recording.stacks[found.blocks[0].stack])) == "/home/me/train.py:3 main"


def _one_event(tmp_path: Path, **more: Any) -> Recording:
    event = {"action": "alloc", "addr": 4096, "size": 100, "stream": 0, "time_us": 1, **more}
    path = tmp_path / "run.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [[event, dict(event)]]}, 4))
    return read(path)


TEXT = 'File "/home/me/model.py", line 12, in forward\n    return self.linear(x)\n'


def test_compiled_lines_lead_to_the_model(tmp_path: Path) -> None:
    frame = {
        "filename": "/tmp/torchinductor_me/ab/cab.py",
        "line": 40,
        "name": "call",
        "fx_original_trace": TEXT,
    }
    recording = _one_event(tmp_path, frames=[frame])
    assert str(line_of(recording.stacks[recording.traces[0].stack[0]])) == "/home/me/model.py:12 forward"


def test_a_backward_leads_to_its_forward(tmp_path: Path) -> None:
    outer = 'File "/home/me/train.py", line 3, in main\n    train()\n'
    recording = _one_event(tmp_path, frames=[], forward_frames=[outer, TEXT])
    line = line_of(recording.stacks[recording.traces[0].stack[1]])
    assert (str(line), line.kind) == ("/home/me/model.py:12 forward", "backward")


def test_the_forward_of_many_events_is_kept_once(tmp_path: Path) -> None:
    """torch writes its lines anew for each event."""
    events = [
        {
            "action": "alloc",
            "addr": 4096 * number,
            "size": 100,
            "stream": 0,
            "frames": [],
            "forward_frames": [(TEXT + str(step))[:-1] for step in range(30)],
        }
        for number in range(500)
    ]
    path = tmp_path / "run.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [events]}, 4))
    with open(path, "rb") as file:
        reader = _Reader(file)
        recording = reader.recorded()
    assert len(recording.stacks) == 2
    assert recording.stacks[1].forward
    assert reader._open < 10
    assert len({id(value) for value in reader.memo}) < 200


def test_names_that_a_terminal_would_obey_are_written_out(tmp_path: Path) -> None:
    frame = {"filename": "/home/me/\x1b[31mred.py", "line": 1, "name": "f\n\ud800"}
    recording = _one_event(tmp_path, frames=[frame])
    [found] = recording.stacks[1].frames
    assert (found.file, found.name) == (r"/home/me/\x1b[31mred.py", r"f\n\ud800")


def test_standard_input(tmp_path: Path) -> None:
    program = Program()
    varied(program, 5)
    path = program.dump(tmp_path / "run.pickle")
    said = []
    for data in (path.read_bytes(), gzip.compress(path.read_bytes())):
        said.append(gpulint("snapshot", "-", cwd=tmp_path, stdin=data, status=0).stdout)
    assert said[0] == said[1]
    assert b"What makes the peak" in said[0]


def test_events_of_a_kind_that_is_not_known_stay_in_place(tmp_path: Path) -> None:
    assert _one_event(tmp_path, action="annotate").traces[0].action.tolist() == [Action.OTHER] * 2


def _segment(**given: Any) -> bytes:
    return pickle.dumps(
        {"segments": [{"address": 4096, "total_size": 3, "device": 0, "blocks": [], **given}]}, 4
    )


def _zip() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        file.writestr("archive/data.pkl", b"")
    return data.getvalue()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (_zip(), "is a zip file, as torch.save writes"),
        (json.dumps({"segments": []}).encode(), "is text"),
        (b"<!doctype html>", "is text"),
        (b"\x89PNG\r\n", "does not begin as a pickle"),
        (pickle.dumps([1, 2, 3], 4), "no list of segments"),
        (pickle.dumps({"segments": 3}, 4), "no list of segments"),
        (pickle.dumps({"segments": [{"address": 3}]}, 4), "no list of segments"),
        (pickle.dumps({"segments": [{"address": "x", "total_size": 3, "blocks": []}]}, 4), "not laid out"),
        (
            pickle.dumps(
                {"segments": [], "device_traces": [[{"action": "alloc", "addr": -3, "size": 3}]]}, 4
            ),
            "not laid",
        ),
        (pickle.dumps({"weights": Path("x")}, 4), "names a class or a function"),
        (_segment(blocks=[{"size": 5, "state": "inactive", "history": ["x"]}]), "not laid out"),
        (_segment(blocks=[{"size": -5, "state": "inactive"}]), "not laid out.*-5 bytes"),
        (_segment(total_size=1 << 60), "not laid out"),
        (_segment(blocks=[{"size": 5}]), "not laid out"),
        (pickle.dumps({"segments": [], "device_traces": 5}, 4), "not laid out"),
    ],
)
def test_what_is_no_snapshot_is_refused_in_one_sentence(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "file.pickle"
    path.write_bytes(data)
    with pytest.raises(NotASnapshot, match=said) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_that_ends_too_early_is_refused_wherever_it_ends(tmp_path: Path) -> None:
    program = Program()
    program.malloc(700, ("/home/me/train.py", 3, "main"))
    program.free(program.malloc(5 << 20), ("/home/me/train.py", 4, "main"))
    whole = program.dump(tmp_path / "run.pickle").read_bytes()
    path = tmp_path / "cut.pickle"
    for length in range(1, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(NotASnapshot):
            read(path)


READ = """
import resource, sys
from gpulint.snapshot.reading import read
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
recording = read(sys.argv[1])
assert "torch" not in sys.modules and "numpy" not in sys.modules
print(sum(map(len, recording.traces)), 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
"""


@pytest.mark.slow
def test_it_is_read_in_a_small_part_of_its_size(tmp_path: Path) -> None:
    """80 bytes an event at most, where the unpickler takes 1.5 KiB; and neither torch nor numpy."""
    program = Program()
    training(program, steps=1500, depth=120)
    path = program.dump(tmp_path / "run.pickle")
    done = run_command(sys.executable, "-c", READ, path, status=0)
    events, taken = map(int, done.stdout.split())
    assert events > 100_000
    assert taken < 80 * events + (6 << 20)
    assert taken < path.stat().st_size
