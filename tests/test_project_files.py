"""What a project has beside its code: a licence, its changes, how to contribute, hooks, and what `make help` says."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from support import run_command

if sys.version_info < (3, 11):
    import tomli as toml
else:
    import tomllib as toml

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
HOOKS = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")


def targets() -> list[str]:
    """The targets of the Makefile that are commands."""
    found = re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)
    return found[1].split()


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("command", [["make", "help"], ["make"]], ids=" ".join)
def test_make_tells_all_its_targets(command: list[str]) -> None:
    alone = {
        key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    }
    done = run_command(*command, env=alone, cwd=ROOT, status=0)
    told = dict(re.findall(r"^make (\w+) +(\S.*)$", done.stdout, re.MULTILINE))
    assert sorted(told) == sorted(targets())
    assert len(told) == len(done.stdout.splitlines())


def test_quick_runs_tests_that_exist() -> None:
    found = re.search(r"^QUICK := (.+)$", MAKEFILE, re.MULTILINE)
    assert all(list(ROOT.glob(pattern)) for pattern in found[1].split())


def test_paths_that_contributing_names_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"(?:tests|benchmarks|gpulint)/[\w/]+(?:\.py)?(?=[`\s,])", text)
    assert len(named) > 2
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_changelog_begins_with_this_version() -> None:
    from gpulint import __version__

    first = re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert __version__ in first[1]


def test_hooks_have_the_versions_of_the_project() -> None:
    project = toml.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = dict(requirement.split("==") for requirement in project["optional-dependencies"]["dev"])
    assert set(re.findall(r"ruff==([\d.]+)", HOOKS)) == {pinned["ruff"]}


def test_hooks_are_well_formed(tmp_path: Path) -> None:
    configuration = ROOT / ".pre-commit-config.yaml"
    run_command(sys.executable, "-m", "pre_commit", "validate-config", configuration, cwd=tmp_path, status=0)


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda path: path.name)
def test_what_github_reads_is_yaml_and_names_what_exists(path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    text = path.read_text(encoding="utf-8")
    assert isinstance(yaml.safe_load(text), dict)
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for goals in re.findall(r"run: make ([a-z ]+)", text):
        assert set(goals.split()) <= set(targets)


def test_ci_runs_on_every_python_that_is_named() -> None:
    project = toml.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.findall(r":: (3\.\d+)", "\n".join(project["classifiers"]))
    assert f">={named[0]}" == project["requires-python"]
    assert str(named).replace("'", '"') in (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")


USES = re.compile(r"uses: ([^\s`{]+)([^\n]*)")
PINNED = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(?:/[\w./-]+)?@(?P<commit>[0-9a-f]{40})")


def used_actions() -> list[tuple[str, str, str]]:
    """(file, action, comment) wherever a workflow, the action, the docs or `gpulint init` name one of somebody else."""
    places = [*(ROOT / ".github").rglob("*.yml"), ROOT / "action.yml", *(ROOT / "docs").glob("*.md")]
    places.append(ROOT / "gpulint/cli/assets/workflow.yaml")
    found = [
        (path.name, *match.groups())
        for path in places
        for match in USES.finditer(path.read_text(encoding="utf-8"))
    ]
    return [one for one in found if not one[1].startswith(("./", "gpulint/"))]


def test_actions_of_others_are_pinned_by_commit() -> None:
    """A tag can be moved; a commit cannot. Each action has one pin everywhere, with its version beside it."""
    pins: dict[str, set[tuple[str, str]]] = {}
    for where, action, comment in used_actions():
        pinned = PINNED.fullmatch(action)
        assert pinned, f"{where}: {action}"
        version = re.fullmatch(r"\s*# (v\d+\.\d+\.\d+)", comment)
        assert version, f"{where}: {action}{comment}"
        pins.setdefault(pinned["name"], set()).add((pinned["commit"], version[1]))
    assert {"actions/checkout", "actions/setup-python", "actions/cache"} <= pins.keys()
    assert [name for name, known in pins.items() if len(known) > 1] == []


def test_nothing_is_named_that_is_not_released() -> None:
    """Until the changelog says that a version is out, nobody is told to install or pin one."""
    from gpulint import __version__

    first = re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    released = "Unreleased" not in first[1]
    for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "editors/vscode/README.md"):
        text = path.read_text(encoding="utf-8")
        refs = re.findall(r"gpulint/gpulint(?:\.git)?@([^\s\"']+)", text)
        refs += re.findall(r"repo: https://github.com/gpulint/gpulint\n\s*rev: (\S+)", text)
        assert set(refs) <= {f"v{__version__}" if released else "main"}, path.name
        if not released:
            index = r"install (?:--\w+ )*[\"']?gpulint(?:\[\w+\])?(?=[\"'`]|\s(?!@)|$)"  # by name alone
            assert not re.search(index, text), path.name


def test_the_extension_has_the_version_of_the_package() -> None:
    from gpulint import __version__

    for name in ("package.json", "package-lock.json"):
        data = json.loads((ROOT / "editors/vscode" / name).read_text(encoding="utf-8"))
        assert data["version"] == __version__, name
    assert data["packages"][""]["version"] == __version__
