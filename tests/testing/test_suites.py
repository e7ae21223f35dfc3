"""The plugin on whole suites: those of benchmarks/suites, whose leaks and peaks are known, run by pytest on the CPU."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import warm
from needs import needs_torch

SUITES = Path(__file__).parent.parent.parent / "benchmarks" / "suites"
MIB = 1024 * 1024

pytestmark = [needs_torch, pytest.mark.slow]
needs_reruns = pytest.mark.skipif(
    find_spec("pytest_rerunfailures") is None, reason="pytest-rerunfailures is not installed"
)


def run(
    folder: Path, suite: Path, *options: str, plugins: tuple[str, ...] = (), **environment: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """pytest on a suite: how it ended, and what was found out, as plain data."""
    result = folder / "result.json"
    result.unlink(missing_ok=True)
    root = suite if suite.is_dir() else suite.parent
    options_of_ours = f"-m pytest -q -p no:cacheprovider -c {os.devnull} --rootdir".split()
    command = [sys.executable, *options_of_ours, str(root)]
    for plugin in ("gpulint.pytest_plugin", "dumping", *plugins):
        command += ["-p", plugin]
    done = warm.run_torch(
        [*command, str(suite), *options],
        cwd=folder,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "SUITE_RESULT": str(result),
            **environment,
            "PYTHONPATH": os.pathsep.join([str(SUITES), environment.get("PYTHONPATH", str(folder))]),
        },
        capture_output=True,
        text=True,
        timeout=250,
    )
    return done, json.loads(result.read_text()) if result.exists() else {}


def write(folder: Path, text: str) -> Path:
    path = folder / "test_it.py"
    path.write_text("import pytest\nimport torch\nfrom torch import nn\n" + text, encoding="utf-8")
    return path


def test_what_tests_leave(tmp_path: Path) -> None:
    done, found = run(tmp_path, SUITES / "planted" / "test_leaving.py", "--gpu-memory-leaks=error")
    left = {one["nodeid"].partition("::")[2]: one for one in found["leftovers"]}
    assert set(left) == {"test_leaves_list", "test_leaves_graph", "test_keeps_the_network"}, done.stdout
    assert left["test_leaves_list"]["size"] == 8 * MIB
    assert left["test_leaves_list"]["holders"] == ["global list `KEPT`, test_leaving.py:34, 1 tensor"]
    assert left["test_leaves_list"]["births"] == ["8.00 MiB born in mib, test_leaving.py:23"]
    assert "GRAPHS" in left["test_leaves_graph"]["holders"][0]
    assert left["test_leaves_graph"]["size"] >= 12 * MIB  # what the graph saved, besides the loss
    assert left["test_keeps_the_network"]["owner"] == "module fixture module_network"
    assert left["test_keeps_the_network"]["size"] == 2 * MIB
    assert "1 failed, 6 passed, 3 errors" in done.stdout
    assert done.returncode == 1
    assert "3 of 7 tests left" in done.stdout


def test_what_is_allowed_is_no_error_and_report_fails_nothing(tmp_path: Path) -> None:
    suite = write(
        tmp_path,
        """
KEPT = []

@pytest.mark.gpu_memory_allow_leak("a cache of the project", max="1MiB")
def test_allowed():
    KEPT.append(torch.zeros(1000))

@pytest.mark.gpu_memory_allow_leak("a cache of the project", max="1KiB")
def test_more_than_allowed():
    KEPT.append(torch.zeros(1000))

@pytest.mark.parametrize("name", ["a 1", "b"])
def test_by_pattern(name):
    KEPT.append(torch.zeros(1000))
""",
    )
    ini = ("-o", "gpu_memory_allow_leaks=test_it.py::test_by_pattern[a 1]")
    done, _ = run(tmp_path, suite, "--gpu-memory-leaks=error", *ini)
    assert "4 passed, 2 errors" in done.stdout, done.stdout
    for name in ("test_more_than_allowed", "test_by_pattern[b]"):
        assert f"ERROR test_it.py::{name}" in done.stdout
    assert "a cache of the project" in done.stdout
    done, _ = run(tmp_path, suite, "--gpu-memory-leaks", "--junitxml", str(tmp_path / "junit.xml"))
    assert done.returncode == 0
    assert "3 of 4 tests left 12.00 KiB behind" in done.stdout, done.stdout
    assert len(list(ET.parse(tmp_path / "junit.xml").iter("testcase"))) == 4
    done, _ = run(tmp_path, suite, "--gpu-memory-leaks=error", "--gpu-memory-leaks-above", "1MiB")
    assert done.returncode == 0


def test_fixtures_of_wider_scopes_keep_what_is_theirs(tmp_path: Path) -> None:
    suite = write(
        tmp_path,
        """
import unittest

class TestOld(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = nn.Linear(256, 256)

    def test_one(self):
        assert self.model is not None

    def test_two(self):
        self.model(torch.ones(1, 256))

@pytest.fixture(scope="class", params=[1, 2])
def parametrized(request):
    return torch.zeros(request.param, 1000)

class TestParametrized:
    def test_it(self, parametrized):
        assert parametrized is not None

@pytest.fixture(scope="session")
def held_by_generator():
    hidden = torch.zeros(5000)
    yield None
    del hidden

def test_generator(held_by_generator):
    pass

def test_after():
    pass
""",
    )
    done, _ = run(tmp_path, suite, "--gpu-memory-leaks")
    # A class attribute that tearDownClass does not delete stays for the whole session: that is left, when the class has ended.
    assert "1 of 6 tests left 257.00 KiB behind" in done.stdout, done.stdout
    assert "test_two (setUpClass" in done.stdout
    assert "class `TestOld`" in done.stdout


def test_peaks_that_are_known(tmp_path: Path) -> None:
    baseline = tmp_path / "memory.json"
    given = ("--gpu-memory-baseline", str(baseline), "--gpu-memory-write-baseline")
    done, found = run(tmp_path, SUITES / "planted" / "test_peaks.py", *given)
    peaks = {name.partition("::")[2]: peak["allocated"] for name, peak in found["peaks"].items()}
    assert peaks == {
        "test_three_at_once": 48 * MIB,
        "test_with_its_fixture": 16 * MIB,
        "test_with_the_network_of_the_session": 24 * MIB,
    }, done.stdout
    assert "2 failed, 5 passed" in done.stdout
    assert (
        "gpu_memory: the peak of this test is 40.00 MiB, 20.00 MiB are allowed: 20.00 MiB too many"
        in done.stdout
    )
    assert "36.00 MiB born in test_over_its_limit" in done.stdout
    assert "held by list `kept` in `test_over_its_limit()`" in done.stdout
    assert "1.00 MiB a step stay on the GPU" in done.stdout
    alone, found = run(tmp_path, SUITES / "planted" / "test_peaks.py", "-k", "of_the_session", *given)
    assert [peak["allocated"] for peak in found["peaks"].values()] == [24 * MIB]
    assert "1 peak written" in alone.stdout
    assert "2 other entries kept" in alone.stdout
    assert len(json.loads(baseline.read_text())["peaks"]) == 3


SIZED = """
import os

@pytest.mark.gpu_memory()
def test_it():
    for _ in range(12):
        torch.zeros(int(os.environ["SIZE"]) * (1 + int(os.environ.get("RANK", 0))), 1024)

def test_unmarked():
    torch.zeros(5, 1024)
"""


def test_a_committed_peak_that_grows_falls_or_is_missing(tmp_path: Path) -> None:
    suite = write(tmp_path, SIZED)
    given = ("--gpu-memory-baseline", "memory.json")
    missing, _ = run(tmp_path, suite, *given, SIZE="100")
    assert missing.returncode == pytest.ExitCode.USAGE_ERROR
    assert "there is no baseline" in missing.stderr
    written, _ = run(tmp_path, suite, *given, "--gpu-memory-write-baseline", SIZE="100")
    assert written.returncode == 0
    assert run(tmp_path, suite, *given, SIZE="101")[0].returncode == 0
    grown, _ = run(tmp_path, suite, *given, SIZE="200")
    assert grown.returncode == 1
    assert "the peak of this test grew from 400.00 KiB to 800.00 KiB" in grown.stdout
    assert "grown by 400.00 KiB: test_it, test_it.py:10" in grown.stdout
    assert "--gpu-memory-write-baseline test_it.py::test_it\n" in grown.stdout
    assert run(tmp_path, suite, *given, "--gpu-memory-tolerance", "150", SIZE="200")[0].returncode == 0
    fallen, _ = run(tmp_path, suite, *given, SIZE="50")
    assert fallen.returncode == 0
    assert "fell from 400.00 KiB to 200.00 KiB: test_it.py::test_it" in fallen.stdout
    every, _ = run(tmp_path, suite, *given, "--gpu-memory-all", SIZE="100")
    assert "memory.json has no peak of this test on the CPU" in every.stdout
    assert "--gpu-memory-write-baseline --gpu-memory-all test_it.py::test_unmarked\n" in every.stdout
    assert "1 of 2 tests have no peak in memory.json for this card and torch, and failed" in every.stdout
    text = (tmp_path / "memory.json").read_text()
    (tmp_path / "memory.json").write_text(text.replace('"cpu"', '"Some Card"'))
    elsewhere, _ = run(tmp_path, suite, *given, SIZE="100")
    assert elsewhere.returncode == 1
    assert "it has Some Card with torch" in elsewhere.stdout


def test_a_gpu_that_is_asked_for_and_missing_is_never_green(tmp_path: Path) -> None:
    suite = write(
        tmp_path,
        """
@pytest.mark.gpu_memory(max_peak="1GiB", device="cuda")
def test_asks():
    pass

@pytest.mark.gpu_no_sync()
def test_syncs():
    pass
""",
    )
    done, _ = run(tmp_path, suite, "-rs")
    assert "\n2 skipped in" in done.stdout, done.stdout
    assert "this test asks for a GPU, and torch" in done.stdout
    done, _ = run(tmp_path, suite, "--gpu-memory-device", "cuda")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "--gpu-memory-device=cuda asks for a GPU, and torch" in done.stderr


@needs_reruns
def test_a_traceback_holds_nothing_through_reruns(tmp_path: Path) -> None:
    suite, given = SUITES / "planted" / "test_reruns.py", ("--reruns", "2")
    held = "Failed: an attempt before this one still holds its tensor"
    done, _ = run(tmp_path, suite, *given, "--showlocals", plugins=("pytest_rerunfailures",))
    assert "1 failed, 2 rerun" in done.stdout
    assert held not in done.stdout
    assert "loaded     = tensor(" in done.stdout  # --showlocals shows them yet
    done, _ = run(
        tmp_path, suite, *given, "-o", "gpu_memory_clear_frames=false", plugins=("pytest_rerunfailures",)
    )
    assert held in done.stdout


def test_a_debugger_sees_the_locals_of_a_failed_test(tmp_path: Path) -> None:
    suite = write(
        tmp_path,
        """
import sys, weakref
DEAD = []

class Thing:
    pass

def test_fails():
    held = Thing()
    number = 4711
    DEAD.append(weakref.ref(held))
    raise ValueError("meant")

def test_after():
    assert DEAD[0]() is None
    assert sys.last_value is not None if hasattr(sys, "last_value") else True
""",
    )
    (tmp_path / "debugger.py").write_text(
        """
class Debugger:
    quitting = False
    def __init__(self, *args, **kwargs): pass
    def reset(self): pass
    def setup(self, *args): pass
    def interaction(self, frame, trace):
        while getattr(trace, "tb_next", None): trace = trace.tb_next
        where = trace.tb_frame if hasattr(trace, "tb_frame") else trace.__traceback__.tb_frame
        print("DEBUGGER SAW", where.f_locals.get("number"))
"""
    )
    given = ("--pdb", "--pdbcls", "debugger:Debugger", "-s")
    done, _ = run(tmp_path, suite, *given, PYTHONPATH=str(tmp_path))
    assert "DEBUGGER SAW 4711" in done.stdout, done.stdout
    assert "1 failed, 1 passed" in done.stdout


@needs_reruns
def test_workers_gather_leaks_and_peaks_through_reruns(tmp_path: Path) -> None:
    """Real workers, real reruns; one process writes the one file."""
    suite = tmp_path / "suite"
    suite.mkdir()
    for name in ("test_a.py", "test_b.py"):
        (suite / name).write_text(
            """
import pytest, torch
KEPT = []
TRIES = []

@pytest.mark.gpu_memory(max_peak="1GiB")
@pytest.mark.parametrize("size", [1, 2])
def test_peak(size):
    torch.zeros(size, 1024, 256)

def test_leaves():
    KEPT.append(torch.zeros(1024, 256))

def test_flaky():
    big = torch.zeros(1024, 1024)
    TRIES.append(1)
    assert len(TRIES) == 2
"""
        )
    given = ("-n", "2", "--dist", "loadfile", "--reruns", "1", "--gpu-memory-leaks=error")
    baseline = ("--gpu-memory-baseline", "memory.json", "--gpu-memory-write-baseline")
    plugins = ("xdist.plugin", "pytest_rerunfailures")
    done, _ = run(tmp_path, suite, *given, *baseline, plugins=plugins)
    assert "8 passed, 2 errors, 2 rerun" in done.stdout, done.stdout + done.stderr
    assert "2 of 8 tests left 2.00 MiB behind" in done.stdout
    assert "4 peaks written to memory.json, 0 other entries kept" in done.stdout
    entries = json.loads((tmp_path / "memory.json").read_text())["peaks"]
    assert [(entry["subject"], entry["allocated"]) for entry in entries] == [
        (f"test_{name}.py::test_peak[{size}]", size * MIB) for name in "ab" for size in (1, 2)
    ]


def test_each_rank_has_its_own_peak(tmp_path: Path) -> None:
    """Two ranks, as torchrun starts them, write one baseline at the same time, and each is held against its own entry."""
    suite = write(tmp_path, SIZED)

    def ranks(*options: str, **environment: str) -> list[subprocess.CompletedProcess[str]]:
        given = ("--gpu-memory-baseline", "memory.json", *options)
        each = [
            {"RANK": str(rank), "WORLD_SIZE": "2", "SUITE_RESULT": f"rank{rank}.json", **environment}
            for rank in range(2)
        ]
        with ThreadPoolExecutor(2) as both:
            started = [both.submit(run, tmp_path, suite, *given, **one) for one in each]
            return [one.result()[0] for one in started]

    assert [one.returncode for one in ranks("--gpu-memory-write-baseline", SIZE="100")] == [0, 0]
    entries = json.loads((tmp_path / "memory.json").read_text())["peaks"]
    measured = {(one["rank"], one["world_size"]): one["allocated"] for one in entries}
    assert measured == {(0, 2): 100 * 4096, (1, 2): 200 * 4096}
    assert [one.returncode for one in ranks(SIZE="100")] == [0, 0]
    assert [one.returncode for one in ranks(SIZE="150")] == [1, 1]
    alone, _ = run(tmp_path, suite, "--gpu-memory-baseline", "memory.json", SIZE="100", RANK="0")
    assert alone.returncode == 1
    assert "on 2 ranks" in alone.stdout
