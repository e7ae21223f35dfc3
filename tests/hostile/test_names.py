"""Names of files and of settings are data: no terminal, no log of a job and no option parser obeys them."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support import HELD, environment, gpulint

from gpulint.source.edits import unified_diff

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs file names of any bytes")
WITH_A_FINDING = f"import torch\n{HELD}"
# Every sign of ASCII that may stand in a name, some bytes that are no text, and what turns the order of letters around.
SIGNS = bytes({*range(1, 0x30), *range(0x3A, 0x41), *range(0x5B, 0x61), *range(0x7B, 0x82)} - {*b"/"})
NAMES = (
    *(bytes([byte]) + b".py" for byte in SIGNS + b"0Aa\x85\x9b\x9f\xa0\xff"),
    "\u202egnp.py".encode(),
    "\u2066\u2069.py".encode(),
    b"\x1b[31mred.py",
    b"::error::x.py",
    b"%0A.py",
    b"--output-file=out.py",
    b"$(touch ran).py",
)
OBEYED = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is found in it is found once: the others read it in the cache."""
    folder = tmp_path_factory.mktemp("named") / "clone"
    (folder / ".git").mkdir(parents=True)
    for name in NAMES:
        (folder / os.fsdecode(name)).write_text(WITH_A_FINDING)
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        *(
            (f"--output-format={form}",)
            for form in ("text", "concise", "github", "gitlab", "sarif", "json", "json-lines")
        ),
        ("--diff",),
        ("--show-files",),
        ("--statistics",),
        ("--fix", "--show-fixes"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_no_format_has_a_sign_that_a_terminal_obeys(
    named: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    if "--fix" in arguments:
        named = shutil.copytree(named, tmp_path / "clone")
    done = gpulint("check", *arguments, ".", cwd=named)
    assert done.returncode in (0, 1), done.stderr
    told = (done.stdout + done.stderr).decode()
    assert not OBEYED.findall(told)
    assert not (named / "ran").exists()
    assert not (named / "out.py").exists()


def test_a_job_gets_its_summary_and_its_outputs_whatever_the_names(named: Path, tmp_path: Path) -> None:
    summary, output = tmp_path / "summary", tmp_path / "output"
    job = environment(
        GITHUB_STEP_SUMMARY=str(summary),
        GITHUB_OUTPUT=str(output),
        GITHUB_REPOSITORY="some/where",
        GITHUB_SHA="c0ffee",
        GITHUB_WORKSPACE=str(named),
    )
    done = gpulint("check", "--output-format=github", "--fail-on=info", ".", cwd=named, env=job, status=1)
    assert output.read_text() == f"findings={len(NAMES)}\n"
    assert not OBEYED.findall(summary.read_text())
    commands = [line for line in done.stdout.decode().splitlines() if line.startswith("::")]
    assert len(commands) == len(NAMES)
    assert {line.split()[0] for line in commands} == {"::notice"}


def test_a_diff_with_such_names_is_one_that_git_applies(clone: Path) -> None:
    name = '\x1b[31m\u202e"\\.py'
    (clone / name).write_text("a\n")
    diff = unified_diff("a\n", "b\n", name)
    assert not OBEYED.findall(diff)
    subprocess.run(["git", "init", "-q", "."], cwd=clone, check=True)
    subprocess.run(["git", "apply"], cwd=clone, check=True, input=diff.encode())
    assert (clone / name).read_text() == "b\n"


SETTINGS = (
    'select = ["\\u001b[31m"]',
    '"\\u001b\\u202e" = 1',
    'extend = "\\u001b[31m"',
    'rules = ["\\u001b"]',
    'fail-on = "\\u001b"',
    'target-torch = "\\u202e"',
    'severity = { "\\u001b" = "error" }',
    'options = { GPU101 = { "\\u001b" = 1 } }',
    'extend-exclude = ["[z-a]\\u001b"]',
    'per-file-ignores = { "\\u001b" = ["\\u001b"] }',
    "x = \x1b[31m",
)


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_complaint_about_a_configuration_is_obeyed(clone: Path, setting: str) -> None:
    folder = clone / "a\x1b[31m\u202e\nb"
    folder.mkdir()
    (folder / "gpulint.toml").write_text(f"{setting}\n")
    (folder / "train.py").write_text(WITH_A_FINDING)
    done = gpulint("check", "--no-cache", folder, cwd=clone, status=2)
    assert not OBEYED.findall(done.stderr.decode())
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "--nope\x1b[31m"),
        ("\x1b[31m",),
        ("rule", "\x1b"),
        ("oom", "\x1b.log"),
        ("explain", "\x1b.py:1"),
    ],
    ids=lambda arguments: arguments[0].strip("\x1b"),
)
def test_no_complaint_about_the_command_line_is_obeyed(clone: Path, arguments: tuple[str, ...]) -> None:
    done = gpulint(*arguments, cwd=clone, status=2)
    assert not OBEYED.findall((done.stdout + done.stderr).decode())


def test_the_hooks_end_their_options_before_the_names() -> None:
    hooks = (Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text()
    assert hooks.count("\n  entry: ") == hooks.count('\n  args: ["--"]\n') == 2
