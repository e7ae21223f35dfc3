import json
from pathlib import Path

import pytest
from support import CLEAN, HELD, codes, gpulint


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "old.py").write_text(HELD)
    (tmp_path / "clean.py").write_text(CLEAN)
    assert gpulint(".", "--write-baseline", cwd=tmp_path).returncode == 0
    return tmp_path


def new(project: Path) -> list[str]:
    return [name for name, _, _ in codes(".", "--baseline", "gpulint-baseline.json", cwd=project)]


def test_only_new_findings_fail(project: Path) -> None:
    done = gpulint(".", "--baseline", "gpulint-baseline.json", cwd=project, status=0)
    assert b"1 finding accepted by the baseline not shown" in done.stderr
    (project / "new.py").write_text(HELD.replace("total", "running"))
    assert new(project) == ["new.py"]
    assert gpulint(".", "--fail-on=info", "--baseline", "gpulint-baseline.json", cwd=project).returncode == 1
    assert gpulint(".", "--fail-on=info", cwd=project).returncode == 1


def test_moved_code_stays_accepted(project: Path) -> None:
    (project / "old.py").write_text("# moved\n\n\n" + HELD)
    assert new(project) == []
    (project / "pkg").mkdir()
    (project / "old.py").rename(project / "pkg/renamed.py")
    assert new(project) == []
    assert [
        name for name, _, _ in codes("../", "--baseline", "../gpulint-baseline.json", cwd=project / "pkg")
    ] == []


def test_a_second_one_like_it_is_new(project: Path) -> None:
    (project / "copy.py").write_text(HELD)
    assert len(new(project)) == 1


def test_what_is_gone_is_said_and_taken_out(project: Path) -> None:
    (project / "old.py").write_text(CLEAN)
    done = gpulint(".", "--baseline", "gpulint-baseline.json", cwd=project)
    assert b"1 finding of the baseline no longer there" in done.stderr
    gpulint(".", "--baseline", "gpulint-baseline.json", "--write-baseline", cwd=project)
    assert json.loads((project / "gpulint-baseline.json").read_text())["findings"] == []


def test_unreadable_files_are_never_accepted(project: Path) -> None:
    (project / "broken.py").write_text("def f(:\n")
    gpulint(".", "--write-baseline", cwd=project)
    assert new(project) == ["broken.py"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, b"other.json does not exist"),
        ("{", b"is no baseline"),
        ("[]", b"is no baseline"),
        ('{"format": 7, "findings": []}', b"another version"),
        ('{"format": 1, "findings": [{"code": "GPU101"}]}', b"is no baseline"),
    ],
)
def test_wrong_baselines(project: Path, content: str | None, words: bytes) -> None:
    if content is not None:
        (project / "other.json").write_text(content)
    done = gpulint(".", "--baseline", "other.json", cwd=project, status=2)
    assert words in done.stderr
    assert b"Traceback" not in done.stderr
