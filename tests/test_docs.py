"""What README and docs say is so: commands exist and run, links lead somewhere, examples do what they show."""

import json
import os
import re
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import click
import pytest
import warm
from gpulint.rules import all_rules
from schemas import GITLAB_CI, schemas, violations
from support import HELD, environment, gpulint, notebook, run_command

from gpulint.cli._dispatch import cli
from gpulint.config import KEYS, Config
from gpulint.findings import DOCS_URL

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^(?P<fence>```+)(?P<language>\w+)(?P<rest>[^\n]*)\n(?P<body>.*?)^(?P=fence)$", re.M | re.S
)
SHELL = ("console", "bash", "sh", "text")
RESULTS = ROOT / "benchmarks/results"
VERDICTS = ("true", "trivial", "false")
# Commands that only look and tell: run as they stand, in a project of a few files.
HARMLESS = ("check", "rule", "rules", "config", "completion")


def blocks(page: Path, *languages: str) -> list[tuple[str, str]]:
    """(what stands behind the language, body) of the page's code blocks in these languages."""
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [(block["rest"].strip(), block["body"]) for block in found if block["language"] in languages]


def command_lines(page: Path) -> Iterator[str]:
    """Every gpulint command in a page's shell blocks; of a console block with prompts, what follows them."""
    for _, body in blocks(page, *SHELL):
        lines = body.splitlines()
        prompted = [line[2:] for line in lines if line.startswith("$ ")]
        for line in prompted or lines:
            line = re.sub(r"\s#\s.*", "", line).strip()
            if re.match(r"(?:\S+/)?gpulint\s|cat .*\| gpulint ", line + " "):
                yield line


def inline_commands(page: Path) -> Iterator[str]:
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    for span in re.finditer(r"`(gpulint [^`]+)`", text):
        yield " ".join(span[1].split())
    for _, body in blocks(page, "yaml"):
        for line in body.splitlines():
            found = re.search(r"(?:^|[\s/])(gpulint (?:verify|check|--).*)", line)
            if found:
                yield found[1]


ALL_COMMANDS = [(page, line) for page in PAGES for line in (*command_lines(page), *inline_commands(page))]


def resolve(arguments: list[str]) -> tuple[str, click.Command, list[str]]:
    """The name of the command that is meant, the command, and its own arguments."""
    context = click.Context(cli)
    if not arguments or arguments[0] not in (*cli.list_commands(context), "--help", "--version", "-V"):  # type: ignore[attr-defined]
        arguments = ["check", *arguments]
    name = ""
    command: click.Command = cli
    while isinstance(command, click.Group) and arguments and not arguments[0].startswith("-"):
        child = command.get_command(context, arguments[0])
        if child is None:
            break
        name, command, arguments = arguments[0], child, arguments[1:]
    return name, command, arguments


def parse(arguments: list[str]) -> None:
    """Raises click's error where an option does not exist or a choice is none."""
    _, command, rest = resolve(arguments)
    given, _, _ = command.make_parser(click.Context(command, **command.context_settings)).parse_args(
        list(rest)
    )
    for parameter in command.params:
        if isinstance(parameter.type, click.Choice) and parameter.name in given:
            value: Any = given[parameter.name]
            if isinstance(value, str) and not value.isupper():  # FILE, CODES: placeholders
                parameter.type.convert(value, parameter, None)


def words(line: str) -> list[str]:
    line = line.split(" | ")[-1].split(" > ")[0]
    return shlex.split(line.replace("…", ""))[1:]


def test_there_are_commands() -> None:
    assert len(ALL_COMMANDS) > 60
    assert len(RUN) > 25


@pytest.mark.parametrize(("page", "line"), ALL_COMMANDS, ids=[f"{p.stem}-{line}" for p, line in ALL_COMMANDS])
def test_every_command_and_option_exists(page: Path, line: str) -> None:
    parse(words(line))


def options_of_the_plugin() -> set[str]:
    """What pytest knows with the plugin, its own options included."""
    command = [sys.executable, "-m", "pytest", "--help", "-p", "gpulint.pytest_plugin"]
    done = run_command(*command, env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, status=0)
    return set(re.findall(r"--[a-z][\w-]*", done.stdout))


def test_options_in_running_text_exist() -> None:
    known = options_of_the_plugin()

    def walk(command: click.Command, context: click.Context) -> None:
        known.update(
            option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
        )
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                walk(child, click.Context(child, parent=context))

    walk(cli, click.Context(cli))
    known |= {"--help", "--version"}
    for path in PAGES:
        text = re.sub(
            r"^\|.*(torch-preflight|torch_|--torch-).*$",
            "",
            BLOCK.sub("", path.read_text(encoding="utf-8")),
            flags=re.M,
        )
        for option in re.findall(r"`(--[a-z][\w-]*)", text):
            assert option in known, f"{path.name}: {option}"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every file that a documented command names."""
    top = tmp_path_factory.mktemp("template")
    for name in ("src/train.py", "train.py", "scripts/probe.py"):
        (top / name).parent.mkdir(exist_ok=True)
        (top / name).write_text(HELD)
    (top / "train.ipynb").write_text(notebook(HELD))
    (top / "ci.toml").write_text('ignore = ["GPU5"]\n')
    rule = top / "tools/lint/summary_every_step.py"
    rule.parent.mkdir(parents=True)
    rule.write_text(
        next(body for rest, body in blocks(ROOT / "docs/writing-a-rule.md", "python") if "title" in rest)
    )
    assert gpulint("--write-baseline", ".", cwd=top).returncode == 0
    return top


@pytest.fixture
def project(template: Path, tmp_path: Path) -> Path:
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture(scope="module")
def bin_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bin")
    warm.write_command(folder)
    return folder


RUN = sorted(
    {
        line
        for page in PAGES
        for line in command_lines(page)
        if resolve(words(line))[0] in HARMLESS and "--watch" not in line
    }
)


@pytest.mark.parametrize("line", RUN)
def test_harmless_commands_run(line: str, project: Path, bin_folder: Path) -> None:
    paths = [str(bin_folder), str(Path(sys.executable).parent), os.environ["PATH"]]
    env = environment(PATH=os.pathsep.join(paths))
    done = run_command(shutil.which("bash"), "-c", line, cwd=project, env=env)
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr


def test_the_readme_shows_what_gpulint_prints() -> None:
    """Its first block, of the script that `make demo` takes, and its table of rules."""
    specification = spec_from_file_location("pages", ROOT / "docs/pages.py")
    pages = module_from_spec(specification)
    specification.loader.exec_module(pages)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert pages.readme(text) == text, "run: python docs/pages.py"
    assert pages.readme(text.replace("$ gpulint train.py\n", "$ gpulint train.py\nold\n", 1)) == text
    assert pages.readme(text.replace(" held-graph, ", " old-name, ", 1)) == text
    for rule in all_rules():
        assert f"[{rule.code}]({DOCS_URL}{rule.code}) {rule.name}" in text
    assert len(text.splitlines()) <= 150, "the rest belongs into docs/"
    assert len(text.partition("## Rules")[0].split()) <= 800, "the rest belongs below, or into docs/"


def test_the_readmes_links_hold_everywhere() -> None:
    """A package index shows it too, so they are whole addresses: of this repository's files, or of pages that are made from them."""
    text = BLOCK.sub("", (ROOT / "README.md").read_text(encoding="utf-8"))
    repository, site = "https://github.com/gpulint/gpulint/blob/main/", "https://gpulint.readthedocs.io/"
    codes = {rule.code for rule in all_rules()}
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 40
    for link in links:
        address, _, heading = link.partition("#")
        if address.startswith(repository):
            assert (ROOT / address.removeprefix(repository)).is_file(), link
        elif address.startswith(DOCS_URL):
            assert address.removeprefix(DOCS_URL) in codes, link
        else:
            assert address.startswith(site), link
            page = (ROOT / "docs" / address.removeprefix(site)).with_suffix(".md").read_text(encoding="utf-8")
            assert not heading or re.search(rf"^#+ {heading}$", page, re.M | re.I), link


READINGS = tuple(RESULTS.glob("*fresh-reading-*.json"))


@pytest.mark.parametrize("reading", READINGS, ids=lambda path: path.stem)
def test_figures_of_a_reading_are_those_of_its_data(reading: Path) -> None:
    measured = " ".join((ROOT / "docs/measured.md").read_text(encoding="utf-8").split())
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    data = json.loads(reading.read_text())
    judged = Counter((one["confidence"], one["severity"], one["verdict"]) for one in data["findings"])
    levels = Counter((one["confidence"], one["verdict"]) for one in data["findings"])
    cells = [
        "/".join(str(judged["high", level, one]) for one in VERDICTS)
        for level in ("error", "warning", "info")
    ]
    of = {level: "/".join(str(levels[level, one]) for one in VERDICTS) for level in ("medium", "low")}
    cells += [of["medium"]] if levels["medium", "true"] else []
    assert f"| {' | '.join(cells)} |" in measured
    assert of["low"] in measured
    is_of_the_last_two = reading.stem.startswith(("thirteenth", "fourteenth"))
    assert (", ".join(f"{levels['high', one]} *{one}*" for one in VERDICTS) in readme) is is_of_the_last_two
    fixes = Counter(one["fix_ok"] for one in data["findings"] if one["confidence"] == "high")
    assert f"{fixes[False]} of the {fixes[False] + fixes[True]} fixes" in measured
    if not data["worth_mending"]:
        return  # nobody noted what it misses
    told = Counter(one["told"] for one in data["worth_mending"])
    here = rf"of {told.total()} places [^.;]*it told {told.total() - told[None]}, {told['high']}"
    assert bool(re.search(here, readme)) is is_of_the_last_two
    assert re.search(rf"{told.total() - told[None]} of them were told, {told['high']} by default", measured)


BESIDE = [ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]


@pytest.mark.parametrize("path", [*PAGES, *BESIDE], ids=lambda path: path.name)
def test_links_between_files(path: Path) -> None:
    """Rules' pages and reports are made when the site is built, which checks links to them."""
    text = BLOCK.sub("", path.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)[^)]*\)", text):
        assert (path.parent / target).exists() or re.fullmatch(
            r"(?:\.\./)?rules/GPU\d{3}\.md|assets/report\.html", target
        ), target


EXPLAINED = re.compile(r"^`(tests/cases/\S+\.py)`:\n\n```text\n\$ gpulint ([^\n]+)\n(.*?)```$", re.M | re.S)


@pytest.mark.parametrize(
    ("case", "command", "printed"), EXPLAINED.findall((ROOT / "docs/explained-misses.md").read_text())
)
def test_explained_lines_are_what_explain_prints(
    case: str, command: str, printed: str, tmp_path: Path
) -> None:
    name, parts = Path(case).name, re.split(r"^# file: (\S+)\n", (ROOT / case).read_text(), flags=re.M)
    files = dict(zip(parts[1::2], parts[2::2], strict=True)) or {name: parts[0]}
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert gpulint(*shlex.split(command), cwd=tmp_path).stdout.decode() == printed


# -- examples ------------------------------------------------------------------------------------------------


def test_the_rule_of_the_docs_passes_its_own_test(project: Path) -> None:
    done = gpulint("rule", "--test", "tools/lint/summary_every_step.py", cwd=project)
    assert (done.returncode, done.stdout) == (0, b"TEAM101 summary-every-step: ok\n")


def test_the_rule_of_the_docs_in_force(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.gpulint]\nrules = ["tools/lint"]\nselect = ["TEAM"]\n')
    (project / "train.py").write_text(
        HELD.replace("        total += loss\n", "        print(torch.cuda.memory_summary())\n")
    )
    done = gpulint("train.py", "--output-format", "concise", cwd=project)
    assert b"train.py:11:15: TEAM101" in done.stdout
    gpulint("train.py", "--fix", "--unsafe-fixes", cwd=project, status=0)
    assert "memory_summary" not in (project / "train.py").read_text()


def test_the_pytest_example(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    text = next(body for rest, body in blocks(ROOT / "docs/ci.md", "python") if "test_memory" in rest)
    held = text.replace("    for _", "    kept = []\n    for _").replace(
        "        loss.backward()\n", "        loss.backward()\n        kept.append(loss)\n"
    )
    (tmp_path / "test_memory.py").write_text(text)
    (tmp_path / "test_held.py").write_text(held)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    done = warm.run_torch(command, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "`kept`" in done.stdout


@pytest.mark.parametrize("key", KEYS)
def test_examples_of_configuration_keys(key: str, tmp_path: Path) -> None:
    if sys.version_info < (3, 11):
        import tomli as toml
    else:
        import tomllib as toml
    (tmp_path / "tools/lint").mkdir(parents=True)
    data = toml.loads(f"{key} = {KEYS[key].example}")
    assert violations(KEYS[key].schema, data[key]) == []
    if key != "extend":
        assert getattr(Config.from_mapping(data, str(tmp_path)), key.replace("-", "_")) != getattr(
            Config(), key.replace("-", "_")
        )


def ci_files() -> list[tuple[str, str]]:
    return [
        (rest.removeprefix('title="').removesuffix('"'), body)
        for rest, body in blocks(ROOT / "docs/ci.md", "yaml")
    ]


@pytest.mark.parametrize(("title", "text"), ci_files(), ids=[title for title, _ in ci_files()])
def test_ci_recipes_fit_their_schemas(title: str, text: str) -> None:
    yaml = pytest.importorskip("yaml")
    names = {".pre-commit-config.yaml": "pre-commit-config.json", ".gitlab-ci.yml": GITLAB_CI}
    (schema,) = schemas(names.get(title, "github-workflow.json"))
    data = yaml.load(text, yaml.BaseLoader)  # BaseLoader: `on` is no boolean there
    assert violations(schema, yaml.safe_load(text.replace("on:", '"on":', 1))) == []
    inputs = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
    for job in data.get("jobs", {}).values():
        for step in job["steps"]:
            if step.get("uses", "").startswith("gpulint/"):
                assert set(step.get("with", {})) <= set(inputs)


def test_hooks_of_the_docs_exist() -> None:
    yaml = pytest.importorskip("yaml")
    hooks = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    for path in PAGES:
        for _, body in blocks(path, "yaml"):
            data = yaml.safe_load(body)
            for repository in data.get("repos", []) if isinstance(data, dict) else []:
                assert {hook["id"] for hook in repository["hooks"]} <= hooks
