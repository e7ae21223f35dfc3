"""Allocator settings in shell scripts, Dockerfiles and `.env` files: found, silenced, mended."""

import json
from pathlib import Path

import pytest
from gpulint.rules import all_rules
from support import gpulint

from gpulint.analysis.models.allocator import OPTIONS, bad_options
from gpulint.lint.linter import lint_settings
from gpulint.memory.alloc_conf import KEYS
from gpulint.rule import RuleSet
from gpulint.source.shell import is_settings_file, is_settings_text

RULES = RuleSet(all_rules())


def found(text: str) -> list[tuple[int, str]]:
    return [(finding.line, finding.code) for finding in lint_settings(text, "run.sh", RULES)]


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        ("export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128", ["GPU601"]),
        ("PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128 python train.py", ["GPU601"]),
        ("export PYTORCH_ALLOC_CONF='expandable_segments:True,max_split_size_mb:64' # both", ["GPU601"]),
        ('docker run -e PYTORCH_CUDA_ALLOC_CONF="max_split_size_mb:128" image', ["GPU601"]),
        ("ENV PYTORCH_CUDA_ALLOC_CONF max_split_size_mb:256", ["GPU601"]),
        ("ENV A=b PYTORCH_HIP_ALLOC_CONF=expandable_segment:True", ["GPU604"]),
        ("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:true", ["GPU604"]),
        ("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments=True", ["GPU604"]),
        ('export PYTORCH_CUDA_ALLOC_CONF="${PYTORCH_CUDA_ALLOC_CONF:-max_split_size_mb:128}"', ["GPU601"]),
        ("export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:${SIZE}", ["GPU601"]),
        ("export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:2048", []),
        ("export PYTORCH_CUDA_ALLOC_CONF=$CONF", []),
        ("export PYTORCH_CUDA_ALLOC_CONF=${CONF:+$CONF,}expandable_segments:True", []),
        ("# export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128", []),
        ('echo "try PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128"', []),
        ('if [ "$PYTORCH_CUDA_ALLOC_CONF" = "max_split_size_mb:128" ]; then', []),
        ("export MY_PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128", []),
        ("export PYTORCH_CUDA_ALLOC_CONF=", []),
    ],
)
def test_lines(line: str, codes: list[str]) -> None:
    assert found(f"#!/bin/bash\n{line}\n") == [(2, code) for code in codes]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("run.sh", True),
        (".bashrc", True),
        (".env", True),
        (".env.local", True),
        ("prod.env", True),
        ("Dockerfile", True),
        ("Dockerfile.gpu", True),
        ("train.py", False),
        ("Dockerfiles", False),
        (".envrc.py", False),
    ],
)
def test_which_files(name: str, meant: bool) -> None:
    assert is_settings_file(f"/some/where/{name}") is meant


def test_the_command_finds_and_mends_them(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_bytes(
        b"set -e\r\nexport PYTORCH_CUDA_ALLOC_CONF='expandable_segments:True,max_split_size_mb:128'\r\n"
    )
    (tmp_path / "Dockerfile").write_text("FROM x\nENV PYTORCH_CUDA_ALLOC_CONF=expandable_segment:True\n")
    (tmp_path / "latin.sh").write_bytes(b"echo \xe9\n")
    (tmp_path / "other.sh").write_text("((((\n")
    done = gpulint("--output-format", "json", ".", cwd=tmp_path)
    listed = [(Path(item["filename"]).name, item["code"]) for item in json.loads(done.stdout)]
    assert (done.returncode, sorted(listed)) == (1, [("Dockerfile", "GPU604"), ("run.sh", "GPU601")])
    assert gpulint("--fix", "run.sh", cwd=tmp_path).returncode == 0
    assert script.read_bytes() == b"set -e\r\nexport PYTORCH_CUDA_ALLOC_CONF='expandable_segments:True'\r\n"
    assert gpulint("--fix", "--unsafe-fixes", "Dockerfile", cwd=tmp_path).returncode == 0
    assert (tmp_path / "Dockerfile").read_text().endswith("=expandable_segments:True\n")


def test_both_parts_of_the_program_know_the_same_options() -> None:
    assert set(OPTIONS) == KEYS | {"release_lock_on_hipmalloc"}


@pytest.mark.parametrize(
    ("text", "target", "bad"),
    [
        ("expandable_segments:True", (2, 0), True),
        ("expandable_segments:True", (2, 1), False),
        ("expandable_segments:True", None, False),
        ("roundup_bypass_threshold_mb:100", None, True),
        ("roundup_bypass_threshold_mb:100", (1, 13), False),
        ("roundup_power2_divisions:[256:1,512:2,>:4]", None, False),
        ("roundup_power2_divisions:3", None, True),
        ("roundup_power2_divisions:0", None, True),
        ("roundup_power2_divisions:[64:0,128:2]", None, False),
        ("roundup_power2_divisions:[64:3]", None, True),
        ("roundup_power2_divisions:[100:2]", None, True),
        ("roundup_power2_divisions:[64:2", None, True),
        ("roundup_power2_divisions:[64:{}]", None, False),
        ("max_split_size_mb:many", None, True),
        ("max_split_size_mb:128.5", None, False),
        ("max_non_split_rounding_mb:4", None, True),
        ("large_segment_size_mb:12", None, False),
        ("garbage_collection_threshold:much", None, True),
        ("garbage_collection_threshold:80", None, True),
        ("backend:cudamallocasync", None, True),
        ("expandable_segments:True, garbage_collection_threshold:0.8,", None, False),
    ],
)
def test_options(text: str, target: tuple[int, int] | None, bad: bool) -> None:
    assert bool(bad_options(text, target)) is bad


@pytest.mark.parametrize(
    ("name", "text", "meant"),
    [
        ("launch", "#!/bin/bash\n", True),
        ("launch", "#!/usr/bin/env python\n", False),
        ("launch.py", "#!/bin/sh\n", False),
    ],
)
def test_a_first_line_tells_a_script(name: str, text: str, meant: bool) -> None:
    assert is_settings_text(name, text) is meant
