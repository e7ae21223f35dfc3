import json
from pathlib import Path

import pytest
from support import HELD, gpulint

from gpulint.findings import Edit, Finding, Fix, Position, Related, Severity
from gpulint.lint.cache import ABSENT, Cache, Foreign, run_digest
from gpulint.lint.results import FileResult


def no_dependencies(path: str) -> str:
    raise AssertionError(path)


def caches(root: Path) -> Path:
    return root.with_name(f"{root.name}-caches")


def cache(root: Path, digest: str = "d") -> Cache:
    made = Cache(str(caches(root)), str(root), digest)
    made.load()
    return made


def finding(path: str, other: str) -> Finding:
    fix = Fix("safe", "write `.item()`", (Edit(Position(3, 1), Position(3, 5), "loss.item()\n"),))
    related = (Related(other, Position(7, 2), "kept here"), Related(path, Position(1, 1), "from here"))
    return Finding("GPU101", "held-graph", Severity.WARNING, "m", path, 3, 1, 4, 2, "r", "c", fix, related)


def test_entries_come_back(tmp_path: Path) -> None:
    path, other = str(tmp_path / "a.py"), str(tmp_path / "pkg/b.py")
    Path(path).touch()
    entry = FileResult((finding(path, other),), 2, ((other, "h1"), ("/elsewhere/c.py", ABSENT)))
    first = cache(tmp_path)
    first.put(path, "x", entry)
    first.put(str(tmp_path / "clean.py"), "y", FileResult())
    Path(tmp_path / "clean.py").touch()
    first.save()
    again = cache(tmp_path)
    hashes = {other: "h1", "/elsewhere/c.py": ABSENT}
    assert again.get(path, "x", hashes.__getitem__) == entry
    assert again.get(str(tmp_path / "clean.py"), "y", no_dependencies) == FileResult()
    assert again.get(path, "z", hashes.__getitem__) is None
    assert again.get(path, "x", (hashes | {other: "h2"}).__getitem__) is None
    assert again.get(path, "x", (hashes | {"/elsewhere/c.py": "appeared"}).__getitem__) is None
    assert cache(tmp_path, "other settings").get(path, "x", hashes.__getitem__) is None


def test_a_folder_serves_many_projects(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.touch()
    one, two = (Cache(str(caches(tmp_path)), str(tmp_path / name), "d") for name in ("one", "two"))
    one.put(str(path), "x", FileResult())
    one.save()
    one.load()
    two.load()
    assert one.get(str(path), "x", no_dependencies) == FileResult()
    assert two.get(str(path), "x", no_dependencies) is None


def stored(root: Path) -> Path:
    (file,) = caches(root).iterdir()
    return file


GARBAGE = [
    b"{",
    b"\xff\xfe\x00",
    b'{"format": 99, "entries": {}}',
    b'{"format": 1, "entries": []}',
    b'{"format": 1, "entries": {"a.py": ["x", [{"code": 1}], []]}}',
    b'{"format": 1, "entries": {"a.py": ["x", [7], []]}}',
    b'{"format": 1, "entries": {"a.py": ["x", [], [3]]}}',
    b"[" * 100_000,
]


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_is_no_error(tmp_path: Path, garbage: bytes) -> None:
    path = str(tmp_path / "a.py")
    Path(path).touch()
    first = cache(tmp_path)
    first.put(path, "x", FileResult())
    first.save()
    stored(tmp_path).write_bytes(garbage)
    again = cache(tmp_path)
    assert again.get(path, "x", no_dependencies) is None
    again.put(path, "x", FileResult())
    again.save()
    assert cache(tmp_path).get(path, "x", no_dependencies) == FileResult()


def test_unwritable_is_no_error(tmp_path: Path) -> None:
    caches(tmp_path).write_text("a file where a directory should be")
    first = Cache(str(caches(tmp_path)), str(tmp_path), "d")
    with pytest.raises(Foreign):
        first.load()
    first.put(str(tmp_path / "a.py"), "x", FileResult())
    first.save()


def test_runs_over_parts_do_not_forget_each_other(tmp_path: Path) -> None:
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).touch()
    one, two = cache(tmp_path), cache(tmp_path)
    assert one.get(str(tmp_path / "a.py"), "x", no_dependencies) is None
    assert two.get(str(tmp_path / "b.py"), "x", no_dependencies) is None
    one.put(str(tmp_path / "a.py"), "x", FileResult())
    two.put(str(tmp_path / "b.py"), "x", FileResult())
    one.save()
    two.save()
    last = cache(tmp_path)
    assert last.get(str(tmp_path / "a.py"), "x", no_dependencies) == FileResult()
    # What is gone from the disk is dropped when the cache is next written.
    (tmp_path / "b.py").unlink()
    last.put(str(tmp_path / "c.py"), "x", FileResult())
    last.save()
    assert set(json.loads(stored(tmp_path).read_text())["entries"]) == {
        str(tmp_path / "a.py"),
        str(tmp_path / "c.py"),
    }


def test_digest_follows_settings_and_rule_files(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text("one")
    first = run_digest("settings", (str(own),))
    assert run_digest("settings", (str(own),)) == first
    assert run_digest("others", (str(own),)) != first
    own.write_text("two")
    assert run_digest("settings", (str(own),)) != first


EVALUATE = """\
import torch
from torch import nn


def evaluate(model: nn.Module, loader):
    model.eval()
    outputs = []
    for x, y in loader:
        outputs.append(model(x))
    return torch.cat(outputs)
"""
CALLER = """\
import torch
from evaluation import evaluate
from torch import nn


def main(loader):
    with torch.no_grad():
        print(evaluate(nn.Linear(3, 3), loader).shape)
"""


def test_a_file_that_rests_on_others_comes_from_the_cache_until_they_change(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "meters.py").write_text(
        "class Meter:\n    def __init__(self):\n        self.all = []\n\n"
        "    def update(self, value):\n        self.all.append(value)\n"
    )
    held = HELD.replace("from torch import nn\n", "from torch import nn\nfrom meters import Meter\n")
    held = held.replace("total = 0.0", "meter = Meter()").replace("total += loss", "meter.update(loss)")
    (tmp_path / "train.py").write_text(held.replace("return total", "return meter"))
    for cached in (0, 2):
        done = gpulint(".", "-v", "--output-format", "concise", cwd=tmp_path)
        assert b"train.py:12:9: GPU104" in done.stdout
        assert f"{cached} of them from the cache".encode() in done.stderr
    meters = (tmp_path / "meters.py").read_text().replace("append(value)", "append(value.item())")
    (tmp_path / "meters.py").write_text(meters)
    assert gpulint(".", cwd=tmp_path).returncode == 0


def test_findings_that_rest_on_callers_follow_every_file(tmp_path: Path) -> None:
    """Any file may hold a caller, also a new one."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "evaluation.py").write_text(EVALUATE)
    (tmp_path / "main.py").write_text(CALLER)
    assert gpulint(".", cwd=tmp_path).returncode == 0
    (tmp_path / "main.py").write_text(CALLER.replace("with torch.no_grad():", "if True:"))
    done = gpulint(".", "--output-format", "concise", cwd=tmp_path)
    assert b"evaluation.py:9:" in done.stdout
    again = gpulint(".", "-v", cwd=tmp_path, status=1)
    assert b"2 of them from the cache" in again.stderr
    (tmp_path / "new.py").write_text(CALLER.replace("with torch.no_grad():", "if True:"))
    (tmp_path / "main.py").write_text(CALLER)
    assert gpulint(".", cwd=tmp_path).returncode == 1
    (tmp_path / "new.py").unlink()
    assert gpulint(".", cwd=tmp_path).returncode == 0


def test_every_module_that_decides_is_part_of_the_key() -> None:
    from gpulint.lint.cache import _own_sources

    sources = {Path(path).name for path in _own_sources()}
    assert {"linter.py", "asked.py", "evaluator.py", "against.py", "gpu101_held_graph.py"} <= sources
