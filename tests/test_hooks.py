"""The pre-commit hooks, by the real pre-commit in real repositories."""

import subprocess
import sys
from pathlib import Path

import pytest
from support import CLEAN, HELD, environment, notebook, run_command, sources

ROOT = Path(__file__).parents[1]


def git(*arguments: str, cwd: Path) -> str:
    identity = ["-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"]
    return run_command("git", *identity, *arguments, cwd=cwd, env=clean(), status=0).stdout.strip()


def clean(**more: str) -> dict[str, str]:
    """Without the variables that git sets for its own hooks, which would redirect every git command below."""
    return {name: value for name, value in environment(**more).items() if not name.startswith("GIT_")}


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, Path]:
    """A repository with the hooks as they stand now, its commit, and a place for pre-commit's environments."""
    home = tmp_path_factory.mktemp("hooks")
    repository = sources(home / "gpulint", ".pre-commit-hooks.yaml")
    git("init", "-q", cwd=repository)
    git("add", "-A", cwd=repository)
    git("commit", "-qm", "state", cwd=repository)
    return repository, git("rev-parse", "HEAD", cwd=repository), home / "pre-commit"


@pytest.fixture
def project(tmp_path: Path, hooks: tuple[Path, str, Path]) -> Path:
    repository, commit, _ = hooks
    git("init", "-q", cwd=tmp_path)
    (tmp_path / ".pre-commit-config.yaml").write_text(
        f"repos:\n- repo: file://{repository}\n  rev: {commit}\n  hooks:\n  - id: gpulint\n  - id: gpulint-fix\n"
    )
    (tmp_path / "pyproject.toml").write_text('[tool.gpulint]\nextend-exclude = ["vendored"]\n')
    (tmp_path / "vendored").mkdir()
    (tmp_path / "vendored/train.py").write_text(HELD)
    (tmp_path / "clean.py").write_text(CLEAN)
    (tmp_path / "notes.txt").write_text("total += loss\n")
    return tmp_path


def pre_commit(
    project: Path, hooks: tuple[Path, str, Path], *arguments: str
) -> subprocess.CompletedProcess[str]:
    env = clean(PRE_COMMIT_HOME=str(hooks[2]), PRE_COMMIT_COLOR="never")
    return run_command(sys.executable, "-m", "pre_commit", *arguments, cwd=project, env=env, timeout=280)


def test_hooks(project: Path, hooks: tuple[Path, str, Path]) -> None:
    git("add", "-A", cwd=project)
    done = pre_commit(project, hooks, "run", "--all-files")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("Passed") == 2

    (project / "train.py").write_text(HELD)
    (project / "train.ipynb").write_text(notebook(HELD))
    (project / "launch").write_text(
        "#!/bin/sh\nPYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128 python train.py\n"
    )
    (project / "launch").chmod(0o755)
    (project / "Dockerfile").write_text("FROM scratch\nENV PYTORCH_CUDA_ALLOC_CONF max_split_size_mb:128\n")
    git("add", "-A", cwd=project)
    done = pre_commit(project, hooks, "run", "gpulint")
    assert done.returncode == 1
    assert "train.ipynb:cell 1:11:9: " in done.stdout
    assert "launch:2:" in done.stdout
    assert "Dockerfile:2:" in done.stdout
    assert "GPU000" not in done.stdout
    assert "train.py:11:9: " in done.stdout
    assert "GPU101" in done.stdout
    assert "vendored" not in done.stdout

    done = pre_commit(project, hooks, "run", "gpulint-fix")
    assert done.returncode == 1
    assert "files were modified by this hook" in done.stdout
    assert "total += loss\n" not in (project / "train.py").read_text()
    (project / "launch").unlink()
    (project / "Dockerfile").unlink()
    git("add", "-A", cwd=project)
    assert pre_commit(project, hooks, "run").returncode == 0
    assert git("status", "--porcelain", "--untracked-files=all", cwd=project).count("??") == 0


def test_manifest_is_valid() -> None:
    command = [sys.executable, "-m", "pre_commit", "validate-manifest", str(ROOT / ".pre-commit-hooks.yaml")]
    subprocess.run(command, check=True, env=clean())
