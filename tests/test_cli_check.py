"""The command as a user runs it: processes, files, exit statuses."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest
from support import (
    CLEAN,
    HELD,
    HELD_ROW,
    codes,
    environment,
    findings,
    gpulint,
    misbehaving,
    notebook,
    on_terminal,
    run_command,
)

import gpulint as package


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text('[tool.gpulint]\nfail-on = "info"\n')
    (tmp_path / "train.py").write_text(HELD)
    (tmp_path / "clean.py").write_text(CLEAN)
    return tmp_path


def test_check_is_the_default_command(project: Path) -> None:
    bare, named = gpulint(".", cwd=project), gpulint("check", ".", cwd=project)
    assert bare.returncode == named.returncode == 1
    assert bare.stdout == named.stdout
    assert b"GPU101" in bare.stdout
    assert gpulint("check", cwd=project).stdout == bare.stdout
    assert gpulint("--output-format", "text", cwd=project).stdout == bare.stdout


def test_json_has_ruffs_shape(project: Path) -> None:
    (item,) = findings(".", cwd=project)
    assert item["code"] == "GPU101"
    assert item["name"] == "held-graph"
    assert item["severity"] == "info"
    assert item["filename"] == str(project / "train.py")
    assert item["location"] == {"row": HELD_ROW, "column": 9}
    assert item["end_location"]["row"] == HELD_ROW
    assert item["url"].startswith("https://")
    assert item["message"]
    fix = item["fix"]
    assert fix["applicability"] == "safe"
    assert fix["message"]
    assert {"content", "location", "end_location"} == set(fix["edits"][0])


def test_exit_statuses(project: Path) -> None:
    """Of one path as of several."""
    (project / "bytes.py").write_bytes(b"\xff")
    (project / "syntax.py").write_text("def f(:\n")
    for arguments, status in {
        "clean.py": 0,
        "train.py": 1,
        "bytes.py": 1,
        "bytes.py clean.py": 1,
        "syntax.py": 1,
        "syntax.py clean.py": 1,
        "train.py --exit-zero": 0,
        "train.py --fail-on never": 0,
        "none.py": 2,
        "none.py clean.py": 2,
        "none.py train.py --exit-zero": 2,
    }.items():
        assert gpulint(*arguments.split(), cwd=project).returncode == status, arguments
    (project / "empty").mkdir()
    done = gpulint("empty", cwd=project)
    assert (done.returncode, b"no Python files or notebooks found" in done.stderr) == (0, True)


def test_rules_by_code_name_prefix_and_file(project: Path) -> None:
    found = [("train.py", "GPU101", HELD_ROW)]
    for options, expected in {
        "--select GPU1": found,
        "--select held-graph": found,
        "--select GPU5,GPU3": [],
        "--ignore GPU101": [],
        "--ignore held-graph,GPU5": [],
        "--ignore GPU1 --extend-select GPU101": found,
    }.items():
        assert codes(".", *options.split(), cwd=project) == expected, options
    for written in ('[per-file-ignores]\n"train.py" = ["GPU101"]\n', 'ignore = ["held-graph"]\n'):
        (project / "gpulint.toml").write_text(written)
        assert codes(".", cwd=project) == []
        assert codes(".", "--isolated", cwd=project) == found


def test_statistics(project: Path) -> None:
    (project / "more.py").write_text(HELD)
    done = gpulint(".", "--statistics", cwd=project)
    assert done.stdout.decode().splitlines()[0].split() == ["2", "GPU101", "[*]", "held-graph"]
    counted = {"code": "GPU101", "name": "held-graph", "count": 2, "fixable_count": 2, "fixable": True}
    assert findings(".", "--statistics", cwd=project) == [counted]
    lines = gpulint(".", "--statistics", "--output-format", "json-lines", cwd=project).stdout
    assert [json.loads(line) for line in lines.splitlines()] == [counted]
    # A service's format has no place for counts.
    beside = gpulint(".", "--statistics", "--output-format", "github", cwd=project)
    assert beside.stdout.startswith(b"::")
    assert b"2  GPU101  [*] held-graph\n" in beside.stderr


def test_output_file(project: Path) -> None:
    done = gpulint(".", "--output-format", "json", "--output-file", "out.json", cwd=project)
    assert done.stdout == b""
    assert len(json.loads((project / "out.json").read_text())) == 1
    done = gpulint(".", "--output-file", "none/out.txt", cwd=project, status=2)
    assert b"Traceback" not in done.stderr


# Fixing


def test_fix(project: Path) -> None:
    path = project / "train.py"
    path.chmod(0o755)
    done = gpulint(".", "--fix", cwd=project, status=0)
    assert b"Fixed 1 finding" in done.stdout
    fixed = path.read_text()
    assert re.sub(r"loss\.(item|detach)\(\)", "loss", fixed) == HELD != fixed
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    before = path.stat()
    assert gpulint(".", "--fix", cwd=project).returncode == 0
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert sorted(os.listdir(project)) == ["clean.py", "pyproject.toml", "train.py"]


@pytest.mark.parametrize(
    ("newline", "opening", "encoding"),
    [
        ("\n", "", "utf-8"),
        ("\r\n", "", "utf-8"),
        ("\r\n", "", "utf-8-sig"),
        ("\n", "# -*- coding: latin-1 -*-\n", "latin-1"),
        ("\n", "# coding: shift_jis\n", "shift_jis"),
    ],
)
def test_fix_keeps_newlines_and_encoding(project: Path, newline: str, opening: str, encoding: str) -> None:
    word = "日本" if encoding == "shift_jis" else "é"
    text = (opening + HELD + f"# {word}").replace("\n", newline)
    path = project / "train.py"
    path.write_bytes(text.encode(encoding))
    assert gpulint("train.py", "--fix", cwd=project).returncode == 0
    after = path.read_bytes().decode(encoding)
    assert after != text
    assert re.sub(r"total \+= loss\.(item|detach)\(\)", "total += loss", after) == text


def test_diff_changes_nothing_and_git_applies_it(project: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    (project / "sub").mkdir()
    (project / "sub/crlf.py").write_bytes(HELD.replace("\n", "\r\n").encode())
    (project / "sub/open.py").write_text(HELD + "print(train)")
    done = gpulint(".", "--diff", cwd=project, status=1)
    assert (project / "train.py").read_text() == HELD
    subprocess.run(["git", "apply", "--check", "-"], cwd=project, input=done.stdout, check=True)
    subprocess.run(["git", "apply", "-"], cwd=project, input=done.stdout, check=True)
    assert (project / "sub/crlf.py").read_bytes().count(b"\r\n") == HELD.count("\n")
    again = gpulint(".", "--diff", cwd=project)
    assert (again.returncode, again.stdout) == (0, b"")


# Standard input


def test_stdin(project: Path) -> None:
    arguments = ("-", "--stdin-filename", "pkg/mod.py", "--output-format", "concise")
    done = gpulint(*arguments, cwd=project, stdin=HELD.encode(), status=1)
    assert done.stdout.decode().startswith(f"pkg/mod.py:{HELD_ROW}:9: GPU101 ")
    done = gpulint("--stdin-filename", "mod.py", cwd=project, stdin=CLEAN.encode(), status=0)
    done = gpulint("-", cwd=project, stdin=b"x = '\xff'\n", status=1)
    assert b"<stdin>:1:6: error[GPU000]" in done.stdout


def test_stdin_honours_the_configuration_of_its_name(project: Path) -> None:
    (project / "sub").mkdir()
    (project / "sub/gpulint.toml").write_text('ignore = ["GPU101"]\n')
    for name, status in (("sub/a.py", 0), ("a.py", 1)):
        assert gpulint("-", "--stdin-filename", name, cwd=project, stdin=HELD.encode()).returncode == status


def test_stdin_fix_writes_the_source_to_stdout(project: Path) -> None:
    raw = HELD.replace("\n", "\r\n").encode("utf-8-sig")
    done = gpulint("-", "--fix", cwd=project, stdin=raw, status=0)
    assert re.sub(rb"loss\.(item|detach)\(\)", b"loss", done.stdout) == raw
    assert b"Fixed 1 finding" in done.stderr
    assert gpulint("-", "--fix", cwd=project, stdin=b"def f(:\n").stdout == b"def f(:\n"
    done = gpulint("-", "--diff", cwd=project, stdin=HELD.encode(), status=1)
    assert b"-        total += loss\n" in done.stdout


# Bad input


def test_what_cannot_be_read_is_said_and_the_rest_checked(project: Path) -> None:
    (project / "syntax.py").write_text("import torch\nx = 1\ndef f(:\n    pass\n")
    (project / "other_syntax.py").write_text("x = = 1\n")
    (project / "bytes.py").write_bytes(b"import torch\nx = '\xff'\n")
    (project / "nul.py").write_bytes(b"x = 1\0\n")
    (project / "gone.py").symlink_to("nowhere")
    (project / "loop").symlink_to(".")
    (project / "empty.py").write_bytes(b"")
    (project / "dir.py").mkdir()
    (project / "dir.py/inner.py").write_text(HELD)
    found = codes(".", cwd=project)
    assert found == [
        ("bytes.py", "GPU000", 2),
        ("inner.py", "GPU101", HELD_ROW),
        ("gone.py", "GPU000", 1),
        ("loop", "GPU000", 1),
        ("nul.py", "GPU000", 1),
        ("other_syntax.py", "GPU000", 1),
        ("syntax.py", "GPU000", 3),
        ("train.py", "GPU101", HELD_ROW),
    ]
    assert gpulint(".", cwd=project).returncode == 1
    assert gpulint(".", "--fix", cwd=project).returncode == 1
    assert b"total += loss\n" not in (project / "train.py").read_bytes()


@pytest.mark.parametrize(
    "raw",
    [
        b"x = " + b"[" * 2000 + b"]" * 2000 + b"\n",
        b"import torch\nx = " + b"(" * 100_000,
        b"import torch\n" + b"".join(b" " * n + b"if x:\n" for n in range(2000)) + b" " * 2000 + b"0\n",
        b"import torch\nx = a" + b".b" * 20_000 + b"\n",
    ],
    ids=["brackets without torch", "open brackets", "blocks", "attributes"],
)
def test_deep_nesting(project: Path, raw: bytes) -> None:
    (project / "deep.py").write_bytes(raw)
    done = gpulint(".", "--output-format", "concise", cwd=project, status=1)
    lines = done.stdout.decode().splitlines()
    assert len([line for line in lines if line.startswith("deep.py")]) <= 1
    assert not [line for line in lines if "internal error" in line]
    assert [line for line in lines if line.startswith(f"train.py:{HELD_ROW}:9: GPU101")]
    assert b"Traceback" not in done.stderr


# Each of its fixes calls for the other.
RESTLESS = """\
import libcst as cst
from functools import partial
from gpulint.findings import Severity
from gpulint.rule import Claimed, Repair, Replace, Report, Rule

OTHER = {"time.sleep": "wake", "time.wake": "sleep"}


class Restless(Rule):
    code = "OWN1"
    name = "restless"
    severity = Severity.INFO
    triggers = ((b"time",),)

    def claims(self, asked, options):
        for name in OTHER:
            for call, frame in asked.calls(name):
                yield Claimed(call, name, (), partial(self.report, asked, name, call))

    def report(self, asked, name, call):
        change = Replace(asked.node(call).func.attr, cst.Name(OTHER[name]))
        return Report(call, name, repair=Repair("safe", "the other", (change,)))
"""


@pytest.mark.parametrize("mode", ["--fix", "--diff"])
def test_fixes_that_undo_one_another_are_told_of(tmp_path: Path, mode: str) -> None:
    (tmp_path / "own.py").write_text(RESTLESS)
    (tmp_path / "gpulint.toml").write_text('rules = ["own.py"]\nselect = ["OWN1"]\n')
    (tmp_path / "train.py").write_text("import time\n\ntime.sleep(1)\n")
    done = gpulint(mode, "train.py", cwd=tmp_path)
    said = done.stderr.decode()
    assert "train.py: This is a bug in gpulint: the fixes of OWN1 undo or call for one another." in said
    assert "Please report it at https://" in said


def test_file_names_that_are_not_unicode(project: Path) -> None:
    name = os.fsencode(project) + b"/caf\xe9.py"
    with open(name, "w") as stream:
        stream.write(HELD)
    assert gpulint(".", "--output-format", "junit", cwd=project).returncode == 1
    assert gpulint(".", cwd=project, env=environment(LC_ALL="C", PYTHONIOENCODING="ascii")).returncode == 1


def test_an_error_inside_a_rule_costs_one_file(project: Path) -> None:
    misbehaving(project, 'raise KeyError("lost")', files=1)
    done = gpulint(".", "--output-format", "concise", cwd=project, status=2)
    lines = done.stdout.decode().splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("bad0.py:1:1: GPU000 internal error, this file was not checked: KeyError")
    assert "GPU101" in lines[1]
    assert b"Traceback" not in done.stderr
    verbose = gpulint(".", "-v", cwd=project)
    assert b'raise KeyError("lost")' in verbose.stderr


@pytest.mark.parametrize("action", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(7)"])
def test_a_worker_that_dies_costs_one_file(project: Path, action: str) -> None:
    misbehaving(project, action, files=1)
    for number in range(20):
        (project / f"more{number}.py").write_text(HELD + "# filler\n" * 1000)
    done = gpulint(".", "--jobs", "2", "--output-format", "concise", cwd=project, status=2)
    lines = done.stdout.decode().splitlines()
    assert [line for line in lines if "GPU000" in line and line.startswith("bad0.py:1:1:")]
    assert sum("GPU101" in line for line in lines) == 21


def test_interrupt(project: Path) -> None:
    misbehaving(project, "(open('started', 'w').close(), time.sleep(60))", files=4)
    process = subprocess.Popen(
        [sys.executable, "-m", "gpulint", ".", "--jobs", "2"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        start_new_session=True,
    )
    until = time.monotonic() + 60
    while not (project / "started").exists() and time.monotonic() < until:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert out == b""
    assert err.strip() == b"gpulint: interrupted"


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("--diff .", 1),
        (". --output-format json --exit-zero", 0),
        ("explain train.py:11", 0),
        ("codemod oom-guard --diff .", 1),
    ],
)
def test_the_status_is_kept_where_nobody_reads(project: Path, command: str, status: int) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "gpulint", *command.split()],
        cwd=project,
        stdout=writer,
        stderr=subprocess.PIPE,
        env=environment(PYTHONUNBUFFERED="1"),  # each write meets the closed pipe
    )
    os.close(writer)
    assert done.returncode == status, done.stderr
    assert b"rror" not in done.stderr


def test_parallel_and_serial_runs_agree(project: Path) -> None:
    for number in range(20):
        (project / f"more{number:02}.py").write_text(HELD + "# filler\n" * (number * 80))  # worth processes
    first, *others = [findings(".", "--no-cache", "--jobs", jobs, cwd=project) for jobs in "123"]
    assert (others, len(first)) == ([first, first], 21)


# Cache


WITHOUT = """
import sys
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {names!r}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Gone())
from gpulint.cli import main
main(sys.argv[1:])
"""


def without(*names: str, arguments: list[str], cwd: Path) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", WITHOUT.format(names=set(names)), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, env=environment())


def test_a_second_run_parses_nothing(project: Path) -> None:
    (project / "syntax.py").write_text("import torch\ndef f(:\n")
    first = gpulint(".", cwd=project)
    second = without("libcst", "symtable", "torch", "rich", arguments=["."], cwd=project)
    assert (second.returncode, second.stdout) == (first.returncode, first.stdout), second
    (project / "clean.py").write_text(HELD)
    third = without("libcst", arguments=["."], cwd=project)
    assert b"internal error" in third.stdout


def test_cache_places(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("cache")
    files = sorted(os.listdir(project))
    users = environment(GPULINT_CACHE_DIR=None, XDG_CACHE_HOME=str(elsewhere / "users"))
    gpulint(".", "--no-cache", cwd=project, env=users)
    assert os.listdir(elsewhere) == []
    gpulint(".", "--cache-dir", elsewhere / "deep/er", cwd=project, env=users)
    assert len(list((elsewhere / "deep/er").iterdir())) == 1
    gpulint(".", cwd=project, env=users)
    assert len(list((elsewhere / "users/gpulint").iterdir())) == 1
    homeless = environment(GPULINT_CACHE_DIR=None, XDG_CACHE_HOME="relative", HOME="relative")
    assert gpulint(".", cwd=project, env=homeless).stderr == b""
    assert sorted(os.listdir(project)) == files


# Start-up


def test_version_imports_nothing_heavy(tmp_path: Path) -> None:
    heavy = ("libcst", "rich", "torch", "click", "pathspec", "dataclasses")
    done = without(*heavy, arguments=["--version"], cwd=tmp_path)
    assert (done.returncode, done.stdout.decode()) == (0, f"gpulint {version('gpulint')}\n")
    assert package.__version__ == version("gpulint")


def test_linting_needs_neither_torch_nor_rich_and_a_parser_only_where_a_rule_can_fire(project: Path) -> None:
    (project / "book.ipynb").write_text(notebook(HELD))
    heavy = ("torch", "rich", "pygls", "lsprotocol", "IPython", "nbformat")
    done = without(*heavy, arguments=[".", "--no-cache", "--diff"], cwd=project)
    assert (done.returncode, done.stdout.count(b"+        total += loss.")) == (1, 2), done
    for clean in ("import os\n\nprint(os.sep)\n", HELD.replace("total += loss\n", "total += loss.item()\n")):
        (project / "train.py").write_text(clean)
        done = without("libcst", "torch", "rich", arguments=["train.py", "--no-cache"], cwd=project)
        assert done.returncode == 0, done


def test_no_command_imports_another(tmp_path: Path) -> None:
    script = (
        "import sys; from gpulint.cli import main\n"
        "try: main(['check', '.'])\n"
        "finally: print(*(name for name in sys.modules if name.startswith('gpulint.cli.')))"
    )
    done = run_command(sys.executable, "-c", script, cwd=tmp_path)
    loaded = done.stdout.splitlines()[-1].split()
    assert [name for name in loaded if ".commands." in name] == ["gpulint.cli.commands.check"]


def test_help_of_every_command_fits_80_columns() -> None:
    """Through click itself: a process for each command would take long."""
    import click

    from gpulint.cli._dispatch import cli

    def texts(command: click.Command, parent: click.Context | None, name: str) -> Iterator[tuple[str, str]]:
        context = click.Context(
            command, parent=parent, info_name=name, terminal_width=80, **command.context_settings
        )
        yield context.command_path, command.get_help(context)
        if isinstance(command, click.Group):
            for child in command.list_commands(context):
                found = command.get_command(context, child)
                yield from texts(found, context, child)

    shown = dict(texts(cli, None, "gpulint"))
    assert len(shown) > 12
    assert len(shown["gpulint check"].splitlines()) <= 60
    for path, text in shown.items():
        assert max(map(len, text.splitlines())) <= 80, path
        assert "..." not in text.partition("Commands:")[2], path  # no summary is cut off
    top = shown["gpulint"]
    assert len(top.splitlines()) <= 32
    assert "..." not in top.partition("Reading code:")[2]
    assert "Other commands" not in top  # every command has its group


# Terminals


def test_colour_on_a_terminal_only(project: Path) -> None:
    shown = on_terminal(".", cwd=project)
    assert "\x1b[1;3" in shown
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert f"train.py:{HELD_ROW}:9: " in plain
    assert max(len(line) for line in plain.split("\r\n") if "= " in line) <= 80
    # A slow run still erases its progress line.
    assert "\x1b[1" not in on_terminal(".", cwd=project, NO_COLOR="1")
    assert "\x1b" not in on_terminal(".", cwd=project, TERM="dumb")
    assert "\x1b[1" not in on_terminal(".", "--color", "never", cwd=project)
    link = r"\x1b]8;[^;]*;https://gpulint\.readthedocs\.io/rules/GPU101\x1b\\"
    assert re.search(link, shown)
    assert "\x1b]8" not in on_terminal(".", "--color", "never", cwd=project)


def test_colour_in_a_pipe_only_when_forced(project: Path) -> None:
    forced = environment(FORCE_COLOR="1")
    assert b"\x1b" not in gpulint(".", cwd=project).stdout
    assert b"\x1b" in gpulint(".", cwd=project, env=forced).stdout
    assert b"\x1b" not in gpulint(".", cwd=project, env={**forced, "NO_COLOR": "1"}).stdout
    always = gpulint(".", "--color", "always", cwd=project).stdout
    assert (b"\x1b[" in always, b"\x1b]8" in always) == (True, False)  # no links


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize("command", [".", "rules"])
def test_a_terminal_is_filled_and_no_wider(project: Path, command: str, columns: int) -> None:
    shown = re.sub(
        r"\x1b(\[[0-9;]*[mK]|\]8;[^\x1b]*\x1b\\)", "", on_terminal(command, cwd=project, columns=columns)
    )
    widest = max(len(line.rpartition("\r")[2]) for line in shown.split("\r\n"))
    assert 80 * (columns > 80) < widest <= columns


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("cells.py", "# %%\n%matplotlib inline\nimport torch\n", "2:1: GPU000 `%matplotlib inline` is"),
        ("old.py", 'print "loss", 1\n', "1:1: GPU000 this is Python 2"),
        ("older.py", "x.cuda(async=True)\nprint x\n", "1:8: GPU000 `async` is a keyword since Python 3.7"),
        ("kernel.cpp", "int main() { return 0; }\n", "1:5: GPU000 not read as Python"),
        ("wrong.py", "x = (1\n% 2\n", "1:5: GPU000 syntax error: "),
    ],
)
def test_what_is_no_python_3_is_named_in_one_sentence(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    (tmp_path / name).write_text(text)
    done = gpulint(name, "--output-format", "concise", cwd=tmp_path)
    assert (done.returncode, done.stdout.decode().startswith(f"{name}:{said}")) == (1, True), done.stdout


@pytest.mark.parametrize("text", ['print "loss", 1\n', "x.cuda(async=True)\n", "mode = 0755\n"])
def test_code_of_an_older_python_is_a_note_unless_it_was_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "old.py").write_text(text)
    for _ in range(2):  # the second time with what is remembered
        assert gpulint(".", cwd=tmp_path).returncode == 0
        done = gpulint("--output-format", "json", "old.py", cwd=tmp_path)
        assert (done.returncode, json.loads(done.stdout)[0]["severity"]) == (1, "error")
    done = gpulint("--output-format", "json", ".", cwd=tmp_path)
    assert [(one["code"], one["severity"]) for one in json.loads(done.stdout)] == [("GPU000", "info")]
    (tmp_path / "gpulint.toml").write_text('severity = {GPU000 = "warning"}\n')
    done = gpulint("--output-format", "json", "old.py", cwd=tmp_path)
    assert json.loads(done.stdout)[0]["severity"] == "warning"


def test_a_deprecated_name_is_told_once_with_its_other_places(tmp_path: Path) -> None:
    old = "torch.cuda.memory_cached()"
    silenced = f"print({old})  # gpulint: ignore[GPU603]"
    (tmp_path / "a.py").write_text(f"import torch\n\n{silenced}\nprint({old})\nprint(0)\nprint({old})\n")
    (one,) = json.loads(gpulint("--output-format", "json", ".", cwd=tmp_path).stdout)
    assert [one["location"]["row"], *(other["location"]["row"] for other in one["related"])] == [4, 6]
    assert [edit["location"]["row"] for edit in one["fix"]["edits"]] == [4, 6]
    done = gpulint(".", cwd=tmp_path).stdout.decode()
    assert "a.py:6:7: the same name" in done
    gpulint("--fix", ".", cwd=tmp_path)
    assert (tmp_path / "a.py").read_text().count("memory_cached") == 1
    (tmp_path / "a.py").write_text(f"import torch\n\nprint({old})\nprint({old})\n")
    gpulint("--add-ignore", ".", cwd=tmp_path)
    assert (tmp_path / "a.py").read_text().count("ignore[GPU603]") == 2


def test_an_argument_called_async_hides_nothing(project: Path) -> None:
    text = HELD.replace("model(x)", "model(x.cuda(async=True))")
    (project / "train.py").write_text(text)
    helper = 'def loss(x, y):\n    """Grüße"""; return (x - y.cuda(0, async = True)).sum().item()\n'
    (project / "helper.py").write_text(helper)
    for _ in range(2):  # the second time with what is remembered
        done = gpulint("--output-format", "concise", "--fix", "--unsafe-fixes", cwd=project)
        told = [line.split(" ")[:2] for line in done.stdout.decode().splitlines() if ": GPU" in line]
        both = [["helper.py:2:40:", "GPU000"], ["train.py:9:39:", "GPU000"]]
        assert told == [*both, [f"train.py:{HELD_ROW}:9:", "GPU101"]]
        assert (project / "train.py").read_text() == text


def test_progress_on_a_terminal_in_long_runs(project: Path) -> None:
    misbehaving(project, "time.sleep(0.6)", files=3)
    shown = on_terminal(".", "--jobs", "1", "--no-cache", cwd=project)
    assert "/5 files" in shown
    assert "\r\x1b[K" in shown
    assert shown.rindex("\r\x1b[K") < shown.index("train.py")


def test_verbose_says_why_and_how_long_and_quiet_nothing(project: Path) -> None:
    (project / ".venv").mkdir()
    (project / "plain.py").write_text("x = 1\n")
    (project / "broken.py").write_bytes(b"x = '\xff'\n")
    (project / "linked.py").symlink_to(project / "train.py")
    text = gpulint(".", "-v", cwd=project).stderr.decode()
    assert "skipped .venv: excluded by default" in text
    assert "skipped train.py: the same file is checked already" in text  # as linked.py, which comes first
    assert "not analysed plain.py" in text
    assert "not analysed broken.py" not in text
    stages = re.search(r"3 files checked, 0 of them from the cache; \d+ ms in all \((.*)\)", text)
    assert [stage.rpartition(" ")[0].rpartition(" ")[0] for stage in stages[1].split(", ")] == [
        "search", "load rules", "read cache", "read", "lint", "write cache", "report",
    ]  # fmt: skip
    assert re.search(r"slowest linked.py: \d+ ms \((?:GPU\d+ \d+ ms, ){2}GPU\d+ \d+ ms\)", text)
    assert re.search(r"slowest rules: \d+ ms \(GPU\d+ \d+ ms, ", text)
    done = gpulint("-q", "train.py", cwd=project)
    assert (done.stderr, done.stdout.startswith(b"train.py:"), b"Found" in done.stdout) == (b"", True, False)
    assert gpulint("-q", "clean.py", cwd=project).stdout == b""
