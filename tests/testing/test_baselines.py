"""The file of committed peaks: what is written is what is read, in an order that depends on nothing, and broken files are said."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gpulint.runtime.record.peaks import LineAtPeak as Line
from gpulint.runtime.record.peaks import Peak
from gpulint.testing import baselines
from gpulint.testing.baselines import BadBaseline, Key

H200 = Key("train.py --epochs 1", "NVIDIA H200", "2.11")
CPU = Key("train.py --epochs 1", baselines.CPU, "2.13")
PEAK = Peak(
    10_000, 20_000, 0.0, {"start": 4_096, "evaluation": 9_000}, (Line("a.py", 3, "step", "y = f(x)", 512),)
)
ENTRY = '{"subject": "a", "card": "c", "torch": "2.11", "allocated": 1}'


def test_what_is_written_is_read_whatever_the_order(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.json")
    one = {H200: PEAK, CPU: Peak(5)}
    other = {CPU: Peak(5), H200: PEAK}
    baselines.write(path, one)
    assert baselines.read(path) == one == other
    text = Path(path).read_text()
    baselines.write(path, other)
    assert Path(path).read_text() == text
    assert os.listdir(tmp_path) == ["memory.json"]
    changed = baselines.add(path, {CPU: Peak(7)})
    assert (changed[H200], changed[CPU]) == (PEAK, Peak(7))


def test_a_line_is_found_again_by_its_text_or_else_by_its_number() -> None:
    before = [Line("a.py", 3, "f", "x = y", 500), Line("a.py", 9, "f", "h = wide(64)", 500)]
    moved = Line("a.py", 5, "f", "x = y", 900)
    edited = Line("a.py", 9, "f", "h = wide(128)", 1_000)
    new = Line("a.py", 12, "f", "kept = x + 1", 100)
    found = baselines.grown([moved, edited, new], before)
    assert [(one.line, one.before, one.grew) for one in found] == [
        (edited.line, 500, 500),
        (moved.line, 500, 400),
        (new.line, None, 100),
    ]


def test_lines_of_one_function_that_read_alike_are_told_apart() -> None:
    before = [Line("a.py", n, "forward", "x = self.relu(x)", 100 * n) for n in (3, 5, 7)]
    moved = [Line("a.py", n + 1, "forward", "x = self.relu(x)", 100 * n) for n in (7, 3, 5)]
    assert baselines.grown(moved, before) == []
    (growth,) = baselines.grown([*moved, Line("a.py", 10, "forward", "x = self.relu(x)", 50)], before)
    assert (growth.line, growth.before, growth.grew) == (10, None, 50)


def test_a_line_that_the_full_list_lacks_may_have_had_as_much_as_its_last() -> None:
    before = [Line("a.py", n, "f", f"line {n}", 1_000) for n in range(baselines.MOST_LINES)]
    (growth,) = baselines.grown([Line("a.py", 99, "f", "new", 1_500)], before)
    assert (growth.before, growth.grew) == (None, 500)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not JSON"),
        ('{"schema": 1, "peaks": [', "is not JSON"),
        ("[]", "no entry `peaks`"),
        ('{"format": 1, "findings": []}', "no entry `peaks`"),
        ('{"schema": 2, "peaks": []}', "schema 2"),
        ('{"schema": 1, "peaks": {}}', "no list"),
        ('{"schema": 1, "peaks": [{"subject": "a"}]}', "cannot be read"),
        (
            '{"schema": 1, "peaks": [{"subject": "a", "card": "c", "torch": 2, "allocated": 1}]}',
            "expected str",
        ),
        (
            '{"schema": 1, "peaks": [{"subject": "a", "card": "c", "torch": "2", "allocated": -1}]}',
            "`a` below 0",
        ),
        (f'{{"schema": 1, "peaks": [{ENTRY}, {ENTRY}]}}', "two entries of `a`"),
        ("[" * 100_000, "is not JSON"),
        ("<<<<<<< HEAD", "is not JSON"),
    ],
)
def test_what_is_no_baseline_is_one_sentence(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "memory.json"
    path.write_text(text)
    with pytest.raises(BadBaseline, match=says) as raised:
        baselines.read(str(path))
    assert "\n" not in str(raised.value)
    assert str(path) in str(raised.value)


def test_what_is_missing_or_cannot_be_written_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, nowhere = tmp_path / "memory.json", str(tmp_path / "nowhere" / "memory.json")
    with pytest.raises(BadBaseline, match="there is no baseline"):
        baselines.read(str(path))
    assert baselines.read(str(path), missing_is_empty=True) == {}
    with pytest.raises(BadBaseline, match="could not be written"):
        baselines.write(nowhere, {})
    with pytest.raises(BadBaseline, match="does not exist"):
        baselines.check_writable(nowhere)
    baselines.check_writable(str(path))
    path.touch()
    monkeypatch.setattr(os, "access", lambda one, _: one != str(path))  # root may write everywhere
    with pytest.raises(BadBaseline, match=r"memory\.json cannot be written to"):
        baselines.check_writable(str(path))


def test_what_a_later_gpulint_or_an_editor_on_windows_writes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "memory.json"
    baselines.write(str(path), {H200: PEAK})
    data = json.loads(path.read_text())
    data["peaks"][0]["colour"] = "blue"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(data, indent=1).replace("\n", "\r\n").encode())
    assert baselines.read(str(path))[H200] == PEAK


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.json")
    assert baselines.relative_to(path, str(tmp_path / "src" / "train.py")) == "src/train.py"
    assert baselines.relative_to(path, "") == ""
    assert baselines.torch_minor("2.11.0+cu130") == "2.11"
    assert baselines.torch_minor("2.13.0a0+git1") == "2.13"
