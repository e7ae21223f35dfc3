"""The command line as somebody meets it who knows ruff's: mistakes, settings in files and variables, fixes, setting up."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import CLEAN, HELD, HELD_ROW, codes, environment, findings, gpulint, run_command

from gpulint.cli import commands
from gpulint.cli._dispatch import COMMANDS
from gpulint.version import __version__

# One GPU101 with a safe fix, one GPU501 with another, twice.
CLEARS = "        torch.cuda.empty_cache()\n"
SEVERAL = HELD.replace("        optimizer.step()\n", f"{CLEARS}        optimizer.step()\n{CLEARS}")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(HELD)
    (tmp_path / "clean.py").write_text(CLEAN)
    return tmp_path


# Mistakes


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("chek .", 'there is neither a command nor a file called "chek"; did you mean "check"?'),
        ("nothing", 'there is neither a command nor a file called "nothing"; gpulint --help lists the commands'),
        ("version", 'neither a command nor a file called "version"; did you mean "--version"?'),
        ("gpu kll", 'gpulint gpu has no command "kll"; did you mean "kill"?'),
        ("--fixx .", "there is no option --fixx; did you mean --fix?"),
        ("--zzz .", "there is no option --zzz; gpulint check --help shows what there is"),
        ("--fail-on erorr .", 'fail-on: expected one of error, warning, info, never, got "erorr"; did you mean "error"?'),
        ("--output-format ruff .", "--output-format: expected one of text, concise, json,"),
        ("--jobs x .", "--jobs: 'x' is not a valid integer"),
        ("--select GPU110 .", '--select: unknown rule "GPU110"; did you mean "GPU101"?'),
        ("--select gpu1 .", '--select: unknown rule "gpu1"; did you mean "GPU1"?'),
        ("--select all .", '--select: unknown rule "all"; did you mean "ALL"?'),
        ("--config none.toml .", "--config: none.toml does not exist; name a file, or a setting"),
        ("--config a.toml --config b.toml .", "--config: takes one file, and was given a.toml and b.toml"),
        ("rule held-grpah", 'CODE: there is no rule "held-grpah"; did you mean "held-graph"?'),
        ("verify", "SCRIPT is missing; gpulint verify --help shows what there is"),
        ("--show-files -", "--show-files and --show-settings go with paths"),
        ("- train.py", "cannot be checked together with files"),
        ("train.py --stdin-filename x.py", "--stdin-filename needs -"),
        *((f"--{option} .", f"--{option.partition('=')[0]}: ") for option in (
            "select=", "select=,", "ignore=", "exclude=", "target-torch=nonsense", "target-torch=", "ignore=ALL",
            "ignore=GPU999", "extend-select=GPU999",
        )),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence_with_what_to_do(project: Path, arguments: str, said: str) -> None:
    for name in ("a.toml", "b.toml"):
        (project / name).write_text("")
    done = gpulint(*arguments.split(), cwd=project)
    text = done.stderr.decode()
    assert (done.returncode, done.stdout) == (2, b"")
    assert said in text
    assert text.startswith("gpulint: ")
    assert text.count("\n") == 1


def test_a_path_that_is_called_as_a_command_might_be_is_a_path(project: Path) -> None:
    (project / "chek").mkdir()
    (project / "chek/train.py").write_text(HELD)
    assert codes("chek", cwd=project) == [("train.py", "GPU101", HELD_ROW)]


def test_a_working_directory_that_is_gone(project: Path, tmp_path: Path) -> None:
    script = f'mkdir "$0" && cd "$0" && rmdir "$0" && exec "$1" check "{project / "train.py"}"'
    command = ["sh", "-c", script, tmp_path / "gone", Path(sys.executable).with_name("gpulint")]
    done = run_command(*command, env=environment(), status=2)
    assert done.stderr.startswith("gpulint: the working directory is gone: ")


def test_help_as_a_word(tmp_path: Path) -> None:
    assert gpulint("help", cwd=tmp_path).stdout == gpulint("--help", cwd=tmp_path).stdout
    assert gpulint("help", "rule", cwd=tmp_path).stdout == gpulint("rule", "--help", cwd=tmp_path).stdout


def test_notes_do_not_fail_a_run(project: Path) -> None:
    (project / "train.py").write_text("x = 1  # gpulint: ignore[GPU101]\n")
    done = gpulint(".", cwd=project, status=0)
    assert b"Found 1 finding (1 note)" in done.stdout
    assert gpulint(".", "--fail-on", "info", cwd=project).returncode == 1
    (project / "train.py").write_text("x = 1  # gpulint: ignore[GPU999]\n")  # a mistake, and no left-over
    assert gpulint(".", cwd=project).returncode == 1


# Settings


def test_a_configuration_says_how_to_report_and_the_command_line_wins(project: Path) -> None:
    (project / "gpulint.toml").write_text('output-format = "concise"\n')
    concise = gpulint(".", cwd=project).stdout.decode()
    assert concise.startswith(f"train.py:{HELD_ROW}:9: GPU101 [*] ")
    assert json.loads(gpulint(".", "--output-format", "json", cwd=project).stdout)
    (project / "sub").mkdir()
    (project / "sub/gpulint.toml").write_text('output-format = "json"\n')
    assert gpulint("sub", "train.py", cwd=project).stdout.decode() == concise  # that of where it is started


def test_a_configuration_may_ask_for_fixes(project: Path) -> None:
    (project / "gpulint.toml").write_text('fix = true\nshow-fixes = true\nfail-on = "info"\n')
    assert gpulint(".", "--no-fix", cwd=project).returncode == 1
    assert (project / "train.py").read_text() == HELD
    assert gpulint(".", "--write-baseline", cwd=project).returncode == 0
    assert gpulint(".", "--diff", cwd=project).returncode == 1
    assert (project / "train.py").read_text() == HELD
    done = gpulint(".", cwd=project, status=0)
    assert done.stdout.decode().splitlines() == [
        "Fixed:", "  train.py", "    1 × GPU101 held-graph", "Fixed 1 finding; none left.",
    ]  # fmt: skip
    assert (project / "train.py").read_text() != HELD


def test_a_configuration_may_name_a_baseline(project: Path) -> None:
    (project / "gpulint.toml").write_text('baseline = "lint/known.json"\n')
    (project / "lint").mkdir()
    assert b"accepted in " in gpulint(".", "--write-baseline", cwd=project).stderr
    assert (project / "lint/known.json").exists()
    assert gpulint(".", cwd=project).returncode == 0
    assert gpulint("train.py", cwd=project).returncode == 0
    done = gpulint(".", "--baseline", "other.json", cwd=project, status=2)
    assert b"other.json does not exist" in done.stderr


def test_settings_beside_a_file(project: Path) -> None:
    (project / "gpulint.toml").write_text('ignore = ["GPU101"]\n')
    (project / "ci.toml").write_text('fail-on = "never"\n')
    assert codes(".", "--config", "ignore = []", cwd=project) != []
    assert gpulint(".", "--config", "ci.toml", "--config", 'fail-on = "error"', cwd=project).returncode == 0
    assert gpulint(".", "--config", "ci.toml", "--config", 'fail-on = "info"', cwd=project).returncode == 1
    assert codes(".", "--isolated", "--config", 'select = ["GPU5"]', cwd=project) == []
    for command in (["config"], ["rules"], ["explain", "train.py"]):
        done = gpulint(*command, "--config", "ignore = [1]", cwd=project, status=2)
        assert b"--config: ignore: expected a list of strings" in done.stderr


def test_what_would_be_done(project: Path) -> None:
    (project / "gpulint.toml").write_text('extend-exclude = ["clean.py"]\nunfixable = ["GPU101"]\n')
    assert gpulint(".", "--show-files", cwd=project).stdout.decode() == "train.py\n"
    assert gpulint("none", "--show-files", cwd=project).returncode == 2
    shown = gpulint("--show-settings", "--ignore", "GPU2", cwd=project).stdout.decode()
    assert 'unfixable = ["GPU101"]' in shown
    assert '"GPU101",' in shown
    assert '"GPU201",' not in shown
    assert gpulint("config", "--config", 'fail-on = "error"', cwd=project).stdout.count(b'"error"') == 1


@pytest.mark.parametrize(
    ("variable", "value", "shows"),
    [
        ("GPULINT_OUTPUT_FORMAT", "concise", rf"^train.py:{HELD_ROW}:9: GPU101 "),
        ("GPULINT_CONFIG", "ci.toml", "No findings"),
        ("GPULINT_NO_CACHE", "1", "GPU101"),
        ("CLICOLOR_FORCE", "1", "\x1b"),
    ],
)
def test_variables(
    project: Path, tmp_path_factory: pytest.TempPathFactory, variable: str, value: str, shows: str
) -> None:
    (project / "ci.toml").write_text('ignore = ["GPU101"]\n')
    elsewhere = tmp_path_factory.mktemp("cache") / "new"
    done = gpulint(".", cwd=project, env=environment(GPULINT_CACHE_DIR=str(elsewhere), **{variable: value}))
    assert re.search(shows, done.stdout.decode())
    assert elsewhere.exists() == (variable != "GPULINT_NO_CACHE")


def test_a_wrong_variable_is_named(project: Path) -> None:
    done = gpulint(".", cwd=project, env=environment(GPULINT_OUTPUT_FORMAT="jsn"), status=2)
    assert done.stderr.startswith(b"gpulint: GPULINT_OUTPUT_FORMAT: expected one of text,")


# Fixes


def test_only_some_rules_are_fixed(project: Path) -> None:
    (project / "train.py").write_text(SEVERAL)
    done = gpulint(".", "--fix", "--unfixable", "GPU501", cwd=project)
    assert (project / "train.py").read_text().count("empty_cache") == 2
    assert "fixable" not in done.stdout.decode()
    assert [item["fix"] for item in findings(".", "--unfixable", "ALL", cwd=project)] == [None, None]
    done = gpulint(".", "--fix", "--fixable", "empty-cache-in-hot-loop", cwd=project, status=0)
    assert "empty_cache" not in (project / "train.py").read_text()


def test_fix_only_tells_of_nothing_that_is_left(project: Path) -> None:
    (project / "train.py").write_text(SEVERAL)
    done = gpulint(".", "--fix-only", "--fixable", "GPU501", "--show-fixes", cwd=project, status=0)
    assert done.stdout.decode().splitlines() == [
        "Fixed:", "  train.py", "    2 × GPU501 empty-cache-in-hot-loop",
        "Fixed 2 findings; --fix-only tells of no others.",
    ]  # fmt: skip
    assert codes(".", cwd=project) == [("train.py", "GPU101", 10)]
    (project / "broken.py").write_text("def f(:\n")
    assert gpulint(".", "--fix-only", cwd=project).returncode == 1


def test_what_is_fixable_has_one_mark(project: Path) -> None:
    (project / "train.py").write_text(SEVERAL)
    for option in (("--output-format", "concise"), ("--output-format", "grouped"), ("--statistics",)):
        assert gpulint(".", *option, "--unfixable", "GPU501", cwd=project).stdout.decode().count("[*]") == 1


def test_rules_are_left_out_for_some_files(project: Path) -> None:
    (project / "gpulint.toml").write_text('per-file-ignores = { "train.py" = ["ALL"] }\n')
    (project / "old.py").write_text(HELD)
    assert [path for path, *_ in codes(".", cwd=project)] == ["old.py"]
    instead = ("--per-file-ignores", "*.txt:GPU5,old*:GPU2,held-graph")
    assert [path for path, *_ in codes(".", *instead, cwd=project)] == ["train.py"]
    assert codes(".", *instead, "--per-file-ignores", "train.py:GPU1", cwd=project) == []
    assert codes(".", "--isolated", "--extend-ignore", "GPU1", cwd=project) == []
    for wrong, said in (
        ("GPU1", "expected a pattern before 'GPU1'"),
        ("*.py:GPU777", '"*.py": unknown rule "GPU777"'),
        ("*.py:", "names no rule"),
    ):
        done = gpulint(".", "--per-file-ignores", wrong, cwd=project)
        assert (done.returncode, said in done.stderr.decode()) == (2, True), done.stderr


def test_a_fix_may_fail_a_run(project: Path) -> None:
    for expected in (1, 0):
        assert gpulint(".", "--fix", "--exit-non-zero-on-fix", cwd=project).returncode == expected
    (project / "train.py").write_text(HELD)
    assert gpulint(".", "--fix", "--exit-non-zero-on-fix", "--exit-zero", cwd=project).returncode == 0


# The report


def test_findings_that_say_the_same_are_told_once_to_people(project: Path) -> None:
    (project / "train.py").write_text(SEVERAL)
    text = gpulint(".", cwd=project).stdout.decode()
    assert text.count("[GPU501]") == 1
    assert re.search(r"train\.py:12:9: warning\[GPU501\] .* × 2\n", text)
    assert "= also:   14:9\n" in text
    assert "Found 3 findings" in text
    assert len(json.loads(gpulint(".", "--output-format", "json", cwd=project).stdout)) == 3
    assert gpulint(".", "--output-format", "concise", cwd=project).stdout.decode().count("GPU501") == 2


def test_what_was_measured_elsewhere_is_told_once(project: Path) -> None:
    (project / "more.py").write_text(HELD.replace("total", "other"))
    text = gpulint(".", cwd=project).stdout.decode()
    assert text.count("= cost:   at most 512 B, and its graph's nodes in host memory") == 2
    assert text.count("measured elsewhere: ") == 1
    assert text.index("measured elsewhere") < text.index("train.py")
    assert gpulint(".", "-v", cwd=project).stdout.decode().count("measured elsewhere: ") == 2
    told = json.loads(gpulint(".", "--output-format", "json", cwd=project).stdout)
    assert all("H200" in item["measured"] and "H200" not in item["cost"] for item in told)


# Setting up


def test_clean_takes_away_what_runs_have_cached_and_nothing_else(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("cache")
    folder.chmod(0o700)
    (folder / "kept.txt").write_text("kept")
    other = tmp_path_factory.mktemp("other")
    (other / "train.py").write_text(HELD)
    env = environment(GPULINT_CACHE_DIR=str(folder))
    for place in (project, other):
        gpulint(".", cwd=place, env=env)
    assert len(list(folder.iterdir())) == 3
    done = gpulint("clean", cwd=project, env=env)
    assert (done.returncode, done.stdout) == (0, b"forgot .\n")
    assert len(list(folder.iterdir())) == 2
    assert gpulint("clean", "--cache-dir", folder, other, cwd=project).stdout == f"forgot {other}\n".encode()
    assert [path.name for path in folder.iterdir()] == ["kept.txt"]
    assert b"no cache found" in gpulint("clean", cwd=project, env=env).stderr


@pytest.mark.parametrize("command", [(), ("experiment",)])
def test_nothing_at_all_shows_the_help(tmp_path: Path, command: tuple[str, ...]) -> None:
    done = gpulint(*command, cwd=tmp_path, status=2)
    assert done.stdout == b""
    lines = done.stderr.decode().splitlines()
    assert lines[0].startswith("Usage: gpulint")
    assert len(lines) > 8


def test_init_writes_what_is_missing_and_overwrites_nothing(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    names = ["gpulint.toml", ".pre-commit-config.yaml", ".github/workflows/gpulint.yml"]
    gpulint("init", "--diff", cwd=tmp_path, status=0)
    assert not list(tmp_path.iterdir())
    done = gpulint("init", cwd=tmp_path)
    assert done.stdout.decode().splitlines() == [*(f"{name}: written" for name in names), "Next: gpulint ."]
    (hook,) = yaml.safe_load((tmp_path / names[1]).read_text())["repos"]
    assert hook["hooks"] == [{"id": "gpulint"}]
    steps = yaml.safe_load((tmp_path / names[2]).read_text())["jobs"]["gpulint"]["steps"]
    assert steps[-1]["uses"] == f"gpulint/gpulint@{hook['rev']}"
    (tmp_path / "train.py").write_text(HELD)
    assert gpulint(".", "--fail-on", "info", cwd=tmp_path).returncode == 1  # the configuration is a right one
    before = {name: (tmp_path / name).read_bytes() for name in names}
    assert gpulint("init", cwd=tmp_path).stdout.decode().count("left as it is") == 3
    assert {name: (tmp_path / name).read_bytes() for name in names} == before


@pytest.mark.parametrize(
    ("origin", "ref"),
    [
        (None, f"v{__version__}"),
        ({"url": "https://github.com/gpulint/gpulint", "vcs_info": {"vcs": "git", "commit_id": "c" * 40}}, "c" * 40),
        ({"url": "https://github.com/else/gpulint", "vcs_info": {"vcs": "git", "commit_id": "c" * 40}}, "main"),
        ({"url": "file:///project", "dir_info": {}}, "main"),
    ],
    ids=["an index", "a commit", "a commit of a fork", "a folder"],
)  # fmt: skip
def test_init_pins_what_is_installed(tmp_path: Path, origin: object, ref: str) -> None:
    """pip notes beside a package where it came from: nothing where it is a release of the index."""
    yaml = pytest.importorskip("yaml")
    noted = tmp_path / "site" / f"gpulint-{__version__}.dist-info"
    noted.mkdir(parents=True)
    (noted / "METADATA").write_text(f"Metadata-Version: 2.1\nName: gpulint\nVersion: {__version__}\n")
    if origin is not None:
        (noted / "direct_url.json").write_text(json.dumps(origin))
    gpulint("init", cwd=tmp_path, env=environment(PYTHONPATH=str(tmp_path / "site")), status=0)
    (hook,) = yaml.safe_load((tmp_path / ".pre-commit-config.yaml").read_text())["repos"]
    assert hook["rev"] == ref
    assert f"uses: gpulint/gpulint@{ref}" in (tmp_path / ".github/workflows/gpulint.yml").read_text()


def test_init_beside_other_tools(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.gpulint]\n")
    (tmp_path / ".pre-commit-config.yaml").write_text("repos: []\n")
    text = gpulint("init", cwd=tmp_path).stdout.decode()
    assert "pyproject.toml: left as it is\n" in text
    assert ".pre-commit-config.yaml: left as it is; add to it:\n" in text
    assert "- id: gpulint" in text
    assert not (tmp_path / "gpulint.toml").exists()
    assert (tmp_path / ".pre-commit-config.yaml").read_text() == "repos: []\n"


LINE = 'external = ["GPU"]\n'


@pytest.mark.parametrize(
    ("name", "settings", "written"),
    [
        ("ruff.toml", "line-length = 100\n", f"line-length = 100\n\n[lint]\n{LINE}"),
        ("pyproject.toml", "[tool.ruff]\n", f"[tool.ruff]\n\n[tool.ruff.lint]\n{LINE}"),
        (
            "pyproject.toml",
            "[tool.ruff.lint] # ours\r\nselect = []\r\n[tool.x]",
            '[tool.ruff.lint] # ours\r\nexternal = ["GPU"]\r\nselect = []\r\n[tool.x]',
        ),
        (
            "pyproject.toml",
            "\ufeff[tool.ruff]\nline-length = 99",
            f"\ufeff[tool.ruff]\nline-length = 99\n\n[tool.ruff.lint]\n{LINE}",
        ),
        ("pyproject.toml", f"[tool.ruff.lint]\n{LINE}", f"[tool.ruff.lint]\n{LINE}"),
        ("pyproject.toml", "[project]\n", "[project]\n"),
        ("ruff.toml", "broken", "broken"),
    ],
)
def test_init_writes_what_ruff_needs(tmp_path: Path, name: str, settings: str, written: str) -> None:
    path = tmp_path / name
    path.write_bytes(settings.encode())
    shown = gpulint("init", "--diff", cwd=tmp_path).stdout.decode()
    assert ("external" in shown) == (written != settings)
    assert path.read_bytes() == settings.encode()
    for _ in range(2):  # the second time there is nothing to add
        gpulint("init", cwd=tmp_path)
        assert path.read_bytes() == written.encode()


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        (".ruff.toml", '[lint]\nexternal = ["V"]\n', '    [lint]\n    external = ["V", "GPU"]\n'),
        ("ruff.toml", "lint = 3\n", '    [lint]\n    external = ["GPU"]\n'),
        (
            "pyproject.toml",
            '[tool.ruff]\nlint.select = ["E"]\n',
            '    [tool.ruff.lint]\n    external = ["GPU"]\n',
        ),
    ],
)
def test_init_says_what_ruff_needs_where_a_line_more_will_not_do(
    tmp_path: Path, name: str, settings: str, said: str
) -> None:
    (tmp_path / name).write_text(settings)
    assert said in gpulint("init", cwd=tmp_path).stdout.decode()
    assert (tmp_path / name).read_text() == settings


def test_noqa_lives_with_ruff(tmp_path: Path) -> None:
    """One comment, both tools, and the configuration that the docs give."""
    ruff = Path(sys.executable).with_name("ruff")
    if not ruff.exists():
        pytest.skip("ruff is not installed")
    (tmp_path / "train.py").write_text(HELD.replace("total += loss\n", "total += loss  # noqa: GPU101\n"))
    check = [str(ruff), "check", "--no-cache", "--preview", "--select", "RUF100,RUF102", "."]

    def checked() -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(check, cwd=tmp_path, capture_output=True)

    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\n")
    assert b"RUF100" in checked().stdout
    page = (Path(__file__).parents[1] / "docs" / "suppressions.md").read_text()
    (tmp_path / "pyproject.toml").write_text(
        page.partition('toml title="pyproject.toml"\n')[2].partition("```")[0]
    )
    done = checked()
    assert (done.returncode, done.stderr) == (0, b"")
    assert gpulint(".", cwd=tmp_path).returncode == 0


@pytest.mark.skipif(sys.platform == "win32", reason="rights")
def test_init_says_what_it_could_not_write(tmp_path: Path) -> None:
    (tmp_path / ".github").write_text("a file")
    done = gpulint("init", cwd=tmp_path, status=2)
    assert b"gpulint.yml: cannot be written" in done.stderr
    assert (tmp_path / "gpulint.toml").exists()


def test_help_lists_every_command() -> None:
    files = {path.stem for path in Path(commands.__path__[0]).glob("[a-z]*.py")}
    assert set(COMMANDS) == files
