"""Links of a repository that lead out of it: what lies there is neither shown nor written."""

import ast
import json
import os
from pathlib import Path

import pytest
from support import HELD, environment, gpulint

import gpulint as gpulint_package

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
WORDS = (b"swordfish", b"nobody")  # of the user's own files
FORMATS = ("text", "concise", "json", "github", "sarif", "gitlab", "junit", "json-lines")


@pytest.fixture
def theirs(clone: Path, outside: Path) -> Path:
    """The clone, whose files are links to the user's own: Python with a finding, text that is none, and what sets variables."""
    (outside / "secret.py").write_text(f"import torch\nswordfish = 1\n{HELD}")
    (outside / "passwd").write_text("swordfish:x:0:0:nobody:/root:/bin/sh\n")
    (outside / "settings.sh").write_text("export PYTORCH_CUDA_ALLOC_CONF=swordfish:nobody\n")
    (outside / "book.ipynb").write_text('{"swordfish": "nobody"')
    for name in ("secret.py", "passwd", "settings.sh", "book.ipynb"):
        os.utime(outside / name, (0, 0))
    (clone / "sub").mkdir()
    for name, target in (
        ("train.py", outside / "secret.py"),
        ("x.py", outside / "passwd"),
        ("sub/y.py", Path("../../outside/passwd")),
        ("launch.sh", outside / "settings.sh"),
        ("book.ipynb", outside / "book.ipynb"),
        ("git.py", Path(".git/config")),
        ("between.py", Path("x.py")),
    ):
        (clone / name).symlink_to(target)
    (clone / ".git/config").write_text("[core]\n\tswordfish = nobody\n")
    return clone


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    return folder


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


@pytest.mark.parametrize(
    "arguments",
    [
        *((f"--output-format={form}", ".") for form in FORMATS),
        ("--fix", "--unsafe-fixes", "."),
        ("--diff", "--unsafe-fixes", "."),
        ("--add-ignore", "."),
        ("--fix", "train.py", "x.py", "launch.sh", "book.ipynb", "git.py"),
        ("codemod", "alloc-conf", "."),
        ("codemod", "phase-cleanup", "train.py"),
    ],
    ids=" ".join,
)
def test_what_a_link_leads_to(theirs: Path, outside: Path, arguments: tuple[str, ...]) -> None:
    before = contents(outside)
    done = gpulint(*arguments, cwd=theirs)
    said = done.stdout + done.stderr
    assert not any(word in said for word in WORDS), said
    assert contents(outside) == before
    assert not any(path.name.endswith(".tmp") for path in theirs.rglob("*"))


def test_each_such_link_is_told_with_what_to_do(theirs: Path, outside: Path) -> None:
    done = gpulint(".", "--output-format", "json", cwd=theirs)
    told = {os.path.relpath(one["filename"], theirs): one for one in json.loads(done.stdout)}
    assert set(told) == {"train.py", "x.py", "sub/y.py", "launch.sh", "book.ipynb", "git.py", "between.py"}
    for name, one in told.items():
        assert one["code"] == "GPU000"
        assert one["severity"] == "warning"
        assert f"leads out of {theirs}" in one["message"], name
    assert str(outside / "passwd") in told["sub/y.py"]["message"]


def test_links_within_the_project_are_followed(clone: Path) -> None:
    (clone / "src").mkdir()
    (clone / "scripts").mkdir()
    (clone / "src/train.py").write_text(HELD)
    (clone / "between").symlink_to("src/train.py")
    (clone / "scripts/train.py").symlink_to("../between")
    (clone / "scripts/pyproject.toml").write_text("")  # a package of the repository is no repository
    assert b"Fixed 1 finding" in gpulint("--fix", "scripts", cwd=clone).stdout
    assert (clone / "scripts/train.py").is_symlink()
    assert (clone / "between").is_symlink()
    assert os.listdir(clone / "src") == ["train.py"]
    assert b"total += loss\n" not in (clone / "src/train.py").read_bytes()


def test_without_a_repository_a_folder_stands_for_one(tmp_path: Path, outside: Path) -> None:
    (outside / "secret.py").write_text(HELD)
    (tmp_path / "unpacked").mkdir()
    (tmp_path / "unpacked/train.py").symlink_to(outside / "secret.py")
    (tmp_path / "unpacked/linked.py").symlink_to("real.py")
    (tmp_path / "unpacked/real.py").write_text(HELD)
    done = gpulint("--fix", "--output-format", "concise", "unpacked", cwd=tmp_path)
    assert b"unpacked/train.py:1:1: GPU000" in done.stdout
    assert (outside / "secret.py").read_text() == HELD
    assert (tmp_path / "unpacked/real.py").read_text() != HELD


def test_a_file_that_is_named_by_its_own_path_is_written(clone: Path, outside: Path) -> None:
    (outside / "secret.py").write_text(HELD)
    assert gpulint("--fix", outside / "secret.py", cwd=clone).returncode == 0
    assert (outside / "secret.py").read_text() != HELD


@pytest.mark.parametrize("target", ["bashrc", "made"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("--output-file", "report.json", "--output-format", "json", "."),
        ("--output-file", "folder/report.json", "."),
        ("--diff", "--output-file", "report.json", "."),
        ("--write-baseline", "."),
        ("--write-baseline", "--baseline", "folder/report.json", "."),
        ("init",),
        ("snapshot", "train.py", "--report", "report.json"),
        ("verify", "--write-baseline", "--baseline", "report.json", "train.py"),
    ],
    ids=" ".join,
)
def test_reports_and_baselines(clone: Path, outside: Path, target: str, arguments: tuple[str, ...]) -> None:
    """Their names are the user's, and what lies there is the repository's."""
    (outside / "bashrc").write_text('{"format": 1}')
    (clone / "train.py").write_text(HELD)
    (outside / "report.json").write_text('{"format": 1}')
    for name in ("report.json", "gpulint-baseline.json"):
        (clone / name).symlink_to(outside / target)
    for name in ("folder", ".github"):
        (clone / name).symlink_to(outside)
    before = contents(outside)
    done = gpulint(*arguments, cwd=clone, status=2)
    assert b"leads out of" in done.stderr or b"is not a baseline" in done.stderr
    assert contents(outside) == before


# What writes files besides `atomic`: the cache and what a job's own variables name, and, while a program of the user's runs, to
# temporary folders and where it is asked to.
WRITERS = {
    "cache": "its own folder",
    "_options": "the files that GITHUB_OUTPUT and GITHUB_STEP_SUMMARY name",
    "_notebook": "a temporary folder",
}
LINTING = ("source", "analysis", "fix", "lint", "reports", "server", "codemods", "trial", "cli")


def writes(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name == "open":
        given = [*call.args[1:2], *(key.value for key in call.keywords if key.arg == "mode")]
        return any(isinstance(mode, ast.Constant) and set(str(mode.value)) & set("wax+") for mode in given)
    whole = ast.unparse(call.func)
    return name in ("write_text", "write_bytes") or whole in (
        "os.replace",
        "os.rename",
        "shutil.move",
        "os.open",
    )


def test_linting_writes_files_in_one_way() -> None:
    """So that one place decides where a link may lead, and a file is written whole."""
    home = Path(gpulint_package.__file__).parent
    found = {
        path.stem
        for room in LINTING
        for path in (home / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and writes(node)
    }
    assert found <= WRITERS.keys() | {"_dispatch"}  # which opens what takes the place of a closed output


def test_a_configuration_names_no_baseline_elsewhere(clone: Path, outside: Path) -> None:
    (outside / "bashrc").write_text("alias swordfish=nobody\n")
    (clone / ".git/config").write_text("[core]\n")
    (clone / "train.py").write_text(HELD)
    before = contents(outside)
    for named in (outside / "bashrc", outside / "made", "../outside/bashrc", ".git/config", ".git/hooks/x"):
        (clone / "gpulint.toml").write_text(f'baseline = "{named}"\n')
        done = gpulint("--write-baseline", ".", cwd=clone, status=2)
        assert b"lies outside of" in done.stderr
        assert b"gpulint.toml: baseline" in done.stderr
    assert contents(outside) == before
    assert (clone / ".git/config").read_text() == "[core]\n"
    assert os.listdir(clone / ".git") == ["config"]
    assert gpulint("--write-baseline", "--baseline", outside / "made", ".", cwd=clone).returncode == 0
    assert (outside / "made").exists()


def test_what_is_no_baseline_is_not_written_over(clone: Path) -> None:
    (clone / "train.py").write_text(HELD)
    for text in (HELD, "{}", "[]", "<<<<<<< ours\n"):
        (clone / "kept").write_text(text)
        done = gpulint("--write-baseline", "--baseline", "kept", ".", cwd=clone, status=2)
        assert b"is no baseline" in done.stderr
        assert (clone / "kept").read_text() == text
    for text in ("", '{"format": 99}'):
        (clone / "kept").write_text(text)
        assert gpulint("--write-baseline", "--baseline", "kept", ".", cwd=clone).returncode == 0
        assert json.loads((clone / "kept").read_text())["format"] == 1


def test_other_names_of_a_file_are_told(clone: Path) -> None:
    """A fix that gives one of them a new file would part them."""
    (clone / "train.py").write_text(HELD)
    os.link(clone / "train.py", clone / "other.txt")
    for arguments in (("--fix",), ("--add-ignore",)):
        done = gpulint(*arguments, ".", cwd=clone)
        assert b"hard links" in done.stdout + done.stderr
        assert done.returncode != 0
        assert (clone / "train.py").read_text() == (clone / "other.txt").read_text() == HELD
        assert os.path.samefile(clone / "train.py", clone / "other.txt")


@pytest.mark.parametrize("place", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_a_stream_is_no_link_of_anybodys(clone: Path, tmp_path: Path, place: str) -> None:
    if not os.path.exists(place):
        pytest.skip(f"no {place} here")
    (clone / "train.py").write_text(HELD)
    done = gpulint("--output-file", place, "--output-format", "json", ".", cwd=clone)
    assert json.loads(done.stdout)[0]["code"] == "GPU101"


def test_a_pipe_in_the_place_of_a_report_is_not_waited_for(clone: Path) -> None:
    (clone / "train.py").write_text(HELD)
    os.mkfifo(clone / "report.json")
    done = gpulint("--output-file", "report.json", ".", cwd=clone, env=environment(), timeout=60, status=2)
    assert b"report.json: is a directory, pipe, socket or device" in done.stderr
