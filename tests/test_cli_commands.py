"""The commands besides `check` that this part of the program brings along."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import environment, gpulint

from gpulint.config import load_config


def test_config_prints_a_configuration_that_says_the_same(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/base.toml").write_text('extend-exclude = ["gen/x", "*_pb2.py"]\n')
    (tmp_path / "gpulint.toml").write_text(
        'extend = "shared/base.toml"\nignore = ["GPU5"]\nfail-on = "warning"\ntarget-torch = "2.1"\n'
        '[severity]\nGPU101 = "info"\n[per-file-ignores]\n"tests/*" = ["GPU1"]\n'
    )
    done = gpulint("config", ".", cwd=tmp_path, status=0)
    printed = tmp_path / "printed.toml"
    printed.write_bytes(done.stdout)
    loaded = load_config(str(printed))
    original = load_config(str(tmp_path / "gpulint.toml"))
    assert loaded is not None
    assert original is not None
    assert (loaded.fail_on, loaded.target_torch, loaded.severity) == ("warning", "2.1", original.severity)
    assert loaded.per_file_ignores == original.per_file_ignores
    assert [glob.pattern for glob in loaded.extend_exclude] == ["shared/gen/x", "*_pb2.py"]
    assert loaded.select is not None
    assert "GPU101" in loaded.select
    assert not [code for code in loaded.select if code.startswith("GPU5")]
    assert done.stdout.decode().startswith("# gpulint.toml; project root ")


def test_config_errors(tmp_path: Path) -> None:
    assert b"no such file" in gpulint("config", "none", cwd=tmp_path).stderr
    (tmp_path / "gpulint.toml").write_text("x = 1\n")
    done = gpulint("config", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert gpulint("config", "--isolated", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("settings", "valid"),
    [
        ({"select": ["GPU1"], "severity": {"GPU101": "info"}, "options": {"GPU101": {"x": 1}}}, True),
        ({"per-file-ignores": {"tests/*": ["ALL"]}, "target-torch": "2.4", "fail-on": "never"}, True),
        ({"selct": []}, False),
        ({"select": "GPU1"}, False),
        ({"select": ["held-graph"]}, True),
        ({"select": ["GPU 1"]}, False),
        ({"severity": {"GPU101": "fatal"}}, False),
        ({"target-torch": 2}, False),
        ({"fail-on": "always"}, False),
    ],
)
def test_schema(tmp_path: Path, settings: dict[str, object], valid: bool) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(gpulint("config", "--schema", cwd=tmp_path).stdout)
    assert jsonschema.Draft7Validator(schema).is_valid(settings) is valid


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(tmp_path: Path, shell: str) -> None:
    done = gpulint("completion", shell, cwd=tmp_path, status=0)
    assert b"_GPULINT_COMPLETE" in done.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["che"], "check"),
        (["--stat"], "--statistics"),
        (["check", "--unsafe"], "--unsafe-fixes"),
        (["src/", "--unsafe"], "--unsafe-fixes"),
        (["src/", "--output-format", "sa"], "sarif"),
        (["completion", "z"], "zsh"),
    ],
)
def test_bash_completes(tmp_path: Path, words: list[str], expected: str) -> None:
    """Through the script that bash evaluates, as bash calls it."""
    folder = Path(sys.executable).parent
    env = environment(PATH=f"{folder}{os.pathsep}{os.environ['PATH']}")
    line = " ".join(f"'{word}'" for word in ["gpulint", *words])
    script = (
        f'eval "$(gpulint completion bash)"; COMP_WORDS=({line}); COMP_CWORD={len(words)};'
        '_gpulint_completion gpulint; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert expected in done.stdout.split(), done
