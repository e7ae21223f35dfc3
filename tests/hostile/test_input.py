"""Files, configurations and messages out of all measure: a sentence each, and never a wait, a full memory or an internal error."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import HELD, gpulint

from gpulint import ConfigError, check_source
from gpulint.codemods import transform
from gpulint.config import parse_toml
from gpulint.fix.fixing import fix_text
from gpulint.lint.checking import Checker, Task
from gpulint.lint.selection import Config
from gpulint.memory.oom.messages import parse_message
from gpulint.source import files
from gpulint.source.notebooks import NotebookError, read_notebook
from gpulint.source.patterns import UnreadablePattern, ignore_spec

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs pipes")
WITH_A_FINDING = f"import torch\n{HELD}"


def said(clone: Path, *arguments: str, status: int) -> str:
    done = gpulint("check", "--no-cache", "--fail-on=info", *arguments, cwd=clone, timeout=60, status=status)
    words = (done.stdout + done.stderr).decode()
    assert "internal error" not in words
    return words


@pytest.mark.parametrize(
    "name", ["gpulint.toml", "pyproject.toml", ".gitignore", "setup.cfg", "Dockerfile", "helper.py"]
)
def test_a_pipe_in_place_of_a_file_is_not_waited_for(clone: Path, name: str) -> None:
    os.mkfifo(clone / name)
    (clone / "train.py").write_text("from helper import *\n" + EVALUATION)  # whose callers are looked for
    for path in (".", "train.py"):
        assert "GPU201" in said(clone, "--confidence=low", path, status=1)


@pytest.mark.parametrize("path", ["pipe", "/dev/zero"])
@pytest.mark.parametrize("option", ["--baseline", ""])
def test_a_device_or_a_pipe_that_is_named_is_refused(clone: Path, path: str, option: str) -> None:
    os.mkfifo(clone / "pipe")
    (clone / "train.py").write_text(WITH_A_FINDING)
    arguments = (option, path, "train.py") if option else (path,)
    assert "is a pipe, socket or device, not a file" in said(clone, *arguments, status=2 if option else 1)


def test_a_file_that_is_too_large_is_named(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(clone / "huge.py", "wb") as stream:
        stream.truncate(40_000_000_000)
    with pytest.raises(files.FileError, match="larger than 32 MB"):
        files.read_bytes(str(clone / "huge.py"))
    text = WITH_A_FINDING + "DATA = [" + "1.5," * (files.MAX_TEXT // 4) + "]\n"
    (found,) = check_source(text)
    assert found.message == "has 2.0 MB, more than 2 of Python: gpulint does not analyse this file"
    assert not check_source("DATA = [" + "1.5," * (files.MAX_TEXT // 4) + "]\n"), "nothing to look for"


PATTERNS = (
    "*a" * 40 + "b",
    "**/a/" * 40 + "b",
    "*a*/**/" * 20 + "*b",
    "*" * 300 + "b",
    "[ab]*" * 60 + "c",
    "?*" * 60 + "/x",
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_no_pattern_makes_matching_explode(pattern: str) -> None:
    spec = ignore_spec([pattern])  # which tries each way, or comes to an end
    for path in ("a" * 255, "a/" * 1_500 + "c", "/".join(["aaaa"] * 700)):
        assert not spec.match_file(path)


def test_patterns_match_as_pathspec_does() -> None:
    import random

    from pathspec import GitIgnoreSpec

    dice = random.Random(35)
    parts = r"** * a *a*b a*b*c *[ab]*c [!a]*b* a**b \*a* *a*a*a [a-c]?*a* *.py".split()
    for _ in range(1_000):
        pattern = (
            "/" * dice.randrange(2)
            + "/".join(dice.choices(parts, k=dice.randint(1, 4)))
            + "/" * dice.randrange(2)
        )
        theirs, ours = (GitIgnoreSpec.from_lines([pattern]), ignore_spec([pattern]))
        for _ in range(5):
            names = (
                "".join(dice.choices("aabbc.*", k=dice.randint(1, 4))) for _ in range(dice.randint(1, 5))
            )
            path = "/".join(names)
            assert theirs.check_file(path).include == ours.check_file(path).include, (pattern, path)


def test_a_pattern_that_is_none_is_told_with_its_place(clone: Path) -> None:
    with pytest.raises(UnreadablePattern):
        ignore_spec(["[z-a]"])
    (clone / "gpulint.toml").write_text('extend-exclude = ["[z-a]"]\n')
    assert 'gpulint.toml: extend-exclude: "[z-a]" is no pattern that git could read' in said(
        clone, ".", status=2
    )
    (clone / "gpulint.toml").unlink()
    (clone / ".gitignore").write_text("[z-a]\nskipped.py\n")
    (clone / "skipped.py").write_text(WITH_A_FINDING)
    said(clone, ".", status=0)


@pytest.fixture
def deep(clone: Path) -> Iterator[Path]:
    """A file below 1,500 folders; taken away again, or pytest fails at it when it clears up."""
    here = os.getcwd()
    os.chdir(clone)
    try:
        for _ in range(1_500):
            os.mkdir("d")
            os.chdir("d")
        Path("train.py").write_text(WITH_A_FINDING)
    finally:
        os.chdir(here)
    yield clone
    subprocess.run(["rm", "-rf", str(clone / "d")], check=True)


def test_folders_nested_deeper_than_python_recurses_are_linted(deep: Path) -> None:
    assert [Path(path).name for path, _ in files.python_files(str(deep))] == ["train.py"]
    assert "train.py" in said(deep, "--output-format=concise", ".", status=1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = " + "[" * 500 + "]" * 500, "nested too deeply"),
        ("x = " + "{ a = " * 500 + "1" + "}" * 500, "nested too deeply"),
        ("x = " + "9" * 5_000, "a number of thousands of digits"),
    ],
)
def test_toml_out_of_measure_is_no_toml(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_toml(text)


@pytest.mark.parametrize("value", ['"' + "9" * 6_000 + '.1"', "9e999", '"2.4\\u0000"'])
def test_versions_out_of_measure_are_none(value: str) -> None:
    with pytest.raises(ConfigError, match="target-torch"):
        Config.from_mapping(parse_toml(f"target-torch = {value}"))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"format": 1, "findings": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"format": 1, "findings": [{"code": "GPU101", "path": "a", "text": "b", "count": '
        + "9" * 5_000
        + "}]}",
        '{"format": 1, "findings": [{"code": "GPU101", "path": "a", "text": "b", "count": 1e999}]}',
        '{"format": 1, "findings": [{"code": "GPU101", "path": "a", "text": "b", "count": -7}]}',
    ],
)
def test_json_out_of_measure_is_no_baseline(clone: Path, text: str) -> None:
    (clone / "known.json").write_text(text)
    assert "is no baseline" in said(clone, "--baseline", "known.json", ".", status=2)


@pytest.mark.parametrize("key", ["extend", "baseline", "rules"])
def test_a_nul_in_a_path_is_a_path_of_nothing(clone: Path, key: str) -> None:
    value = '["a\\u0000b"]' if key == "rules" else '"a\\u0000b"'
    (clone / "gpulint.toml").write_text(f"{key} = {value}\n")
    said(clone, ".", status=2)


@pytest.mark.parametrize("source", [5, None, True, 1.5, {}, [5], ["import torch\n", 7]])
def test_a_notebook_whose_source_is_no_text_is_none(source: object) -> None:
    book = {"cells": [{"cell_type": "code", "source": source}], "metadata": {}, "nbformat": 4}
    with pytest.raises(NotebookError, match="neither text nor lines"):
        read_notebook(json.dumps(book))


def test_a_notebook_with_numbers_of_thousands_of_digits_is_none() -> None:
    with pytest.raises(NotebookError, match="thousands of digits"):
        read_notebook('{"cells": [], "nbformat": ' + "9" * 5_000 + "}")


@pytest.mark.parametrize("number", ["9" * 5_000, "9" * 400, "0", "9" * 5_000 + "." + "9" * 5_000])
def test_numbers_of_a_log_out_of_measure(clone: Path, number: str) -> None:
    message = (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {number} MiB. GPU {number} has a total capacity of"
        f" {number} GiB of which {number} MiB is free. Process {number} has {number} GiB memory in use."
    )
    parse_message(message)
    (clone / "job.log").write_text(f'  File "a.py", line {number}, in f\n{message}\n')
    done = gpulint("oom", "job.log", cwd=clone)
    assert done.returncode in (0, 1), done.stderr
    assert b"internal error" not in done.stderr


@pytest.mark.parametrize("name", ["alloc-conf", "monitor", "oom-guard", "phase-cleanup"])
def test_a_codemod_keeps_the_last_line_end_of_a_text_of_crs(name: str) -> None:
    text = f"import torch\n\n{HELD}\nif __name__ == '__main__':\n    train(1, 2, 3, 4)\n".replace("\n", "\r")
    assert transform(name, text).endswith("\r")


def test_a_codemod_refuses_what_would_overflow_the_stack() -> None:
    with pytest.raises(RecursionError, match="nested too deeply"):
        transform("monitor", "import torch\nx = " + "(" * 20_000 + ")" * 20_000 + "\n")


EVALUATION = """\
import torch
def evaluate(model: torch.nn.Module, loader):
    model.eval()
    total = 0
    for x in loader:
        out = model(x)
        total += out.sum().item()
    return total
"""


@pytest.mark.parametrize("row", range(8))
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_form_feeds_and_line_ends_survive_a_fix(row: int, end: str) -> None:
    lines = EVALUATION.split("\n")
    lines[row] = f"\f{lines[row]}"
    text = end.join(lines)
    checker = Checker((Config(),), "diff", True, hashing=False)
    done = checker.check_bytes(text.encode(), Task("program.py", 0, len(text), True))
    assert not done.internal
    after = done.outcome.text if done.outcome is not None else text
    compile(after, "program.py", "exec")
    assert after.endswith(end)


def test_a_fix_that_does_not_end_its_finding_is_left_out() -> None:
    text = EVALUATION.replace(
        "def evaluate(model: torch.nn.Module,", "def evaluate(model: torch.nn.Module, torch,"
    )

    def lint(text: str) -> list:
        return check_source(text)

    done = fix_text(text, lint, unsafe=True)
    assert done.passes <= 1
    assert done.text.count("no_grad") <= 1


def test_a_variable_named_as_torch_is_no_internal_error() -> None:
    for text in ("import torch as print\n", "import torch\n"):
        found = check_source(f"{text}{EVALUATION}print(torch(evaluate(print, [])))\n")
        assert "GPU000" not in {finding.code for finding in found}


def test_a_module_whose_name_no_file_can_have_is_not_found(clone: Path) -> None:
    name = "image" + "9" * 5_000
    (clone / "train.py").write_text(
        "import torch\nfrom torch.autograd import Variable\n\n\ndef score(net, image):\n"
        f"    return net(Variable(image, volatile=True)).tolist()\n\n\nprint(score({name}.net, {name}.image))\n"
        f"import {name}\n"
    )
    assert "GPU000" not in said(clone, "--confidence=low", "--output-format=concise", ".", status=1)
