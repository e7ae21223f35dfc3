"""Markers and options: what they mean, and what is said where they are wrong. Without torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import warm

from gpulint.testing.asking import Limits, Misuse, allowed_by, matches, read


def limits_of(**keywords: object) -> Limits:
    return read(pytest.mark.gpu_memory(**keywords).mark)


def test_limits() -> None:
    assert limits_of() == Limits()
    assert limits_of(max_peak="2GiB") == Limits(max_peak=2 * 1024**3, watches_steps=False)
    assert limits_of(max_peak=10, steps=8) == Limits(max_peak=10, steps=8, watches_steps=True)
    assert limits_of(max_drift="1KiB", device="cpu") == Limits(1024, device="cpu")


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"max_peek": 1}, "unknown keyword 'max_peek' (did you mean 'max_peak'?)"),
        ({"limit": 3}, "unknown keyword 'limit'; it takes max_drift"),
        ({"max_peak": "lots"}, "max_peak: 'lots' is not a size"),
        ({"max_peak": 1.5}, "max_peak must be a size such as '512MiB'"),
        ({"max_peak": -1}, "max_peak must be a size"),
        ({"max_drift": None}, "max_drift must be a size"),
        ({"steps": 2}, "steps must be a number of at least 5, and is 2"),
        ({"steps": True}, "steps must be a number"),
        ({"warmup": "x"}, "warmup must be a number of steps"),
        ({"device": "tpu"}, "device must be one of auto, cuda, cpu, and is 'tpu'"),
    ],
)
def test_wrong_limits(keywords: dict[str, object], said: str) -> None:
    with pytest.raises(Misuse) as error:
        limits_of(**keywords)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_other_markers() -> None:
    allow = pytest.mark.gpu_memory_allow_leak
    assert read(allow("a cache", max="1MiB").mark) == read(allow(reason="a cache", max=1024**2).mark)
    assert read(pytest.mark.gpu_no_sync(allowed=2).mark) == 2
    for wrong in allow(), allow(" "), allow("a", "b"):
        with pytest.raises(Misuse, match="gpu_memory_allow_leak"):
            read(wrong.mark)
    with pytest.raises(Misuse, match="keywords only"):
        read(pytest.mark.gpu_no_sync(3).mark)


def test_patterns_of_node_ids_know_no_brackets() -> None:
    assert not matches("tests/test_a.py::test_x[[]cpu*", "tests/test_a.py::test_x[cpu-1]")
    assert matches("tests/test_a.py::test_x[cpu-*]", "tests/test_a.py::test_x[cpu-1]")
    assert not matches("tests/test_a.py::test_x[cpu-*]", "tests/test_a.py::test_x[gpu-1]")
    assert matches("*::test_y", "any/where.py::test_y")


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("tests/*", ("tests/*", None)),
        ("tests/test_a.py::test_x[1 2]", ("tests/test_a.py::test_x[1 2]", None)),
        (" tests/test_a.py::test_x[1 2] 64MiB ", ("tests/test_a.py::test_x[1 2]", 64 * 1024**2)),
        ("tests/* 1.5 GiB", ("tests/*", 3 * 512 * 1024**2)),
        ("tests/* 512", ("tests/*", 512)),
    ],
)
def test_a_size_stands_behind_the_pattern(line: str, meant: tuple[str, int | None]) -> None:
    assert allowed_by(line) == meant


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder)]
    return warm.run_torch(
        [*command, *options], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


def test_wrong_markers_are_told_at_collection(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        """
import pytest

@pytest.mark.gpu_memory(limit=3)
def test_first():
    pass

class TestIt:
    @pytest.mark.parametrize("number", [1, 2])
    @pytest.mark.gpu_no_sync(allowed="some")
    def test_second(self, number):
        pass
"""
    )
    for options in ([], ["-n", "2"]):
        done = run_pytest(tmp_path, *options)
        assert done.returncode != 0
        assert "Traceback" not in done.stdout + done.stderr
        assert "test_it.py:4: @pytest.mark.gpu_memory: unknown keyword 'limit'" in done.stdout
    (tmp_path / "test_it.py").write_text((tmp_path / "test_it.py").read_text().replace("(limit=3)", "()"))
    done = run_pytest(tmp_path)
    assert "test_it.py:9: @pytest.mark.gpu_no_sync: allowed must be a number" in done.stdout
    assert done.stdout.count("allowed must be") <= 2  # once where it is told, once in pytest's summary


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--gpu-memory-leaks=maybe"], "'maybe' is neither report nor error"),
        (["--gpu-memory-leaks", "tests"], "before a path write --gpu-memory-leaks=report"),
        (["--gpu-memory-leaks-above", "lots"], "'lots' is not a size"),
        (["--gpu-memory-tolerance", "-3"], "'-3' is no percentage"),
        (["--gpu-memory-write-baseline"], "needs --gpu-memory-baseline FILE"),
        (["--gpu-memory-all"], "needs --gpu-memory-baseline FILE"),
        (["--gpu-memory-device", "tpu"], "invalid choice: 'tpu'"),
        (["-o", "gpu_memory_allow_leaks=a.py::* 10Mx"], "'10Mx' is not a size"),
    ],
)
def test_wrong_options_are_told_in_four_lines(tmp_path: Path, options: list[str], said: str) -> None:
    done = run_pytest(tmp_path, *options)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 5, done.stderr
