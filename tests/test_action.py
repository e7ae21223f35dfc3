"""The GitHub action: fits GitHub's schema, and its shell steps do what they say, run by bash as a runner does."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from needs import needs_torch
from schemas import schemas, violations
from support import CLEAN, HELD, environment, run_command, sources

ROOT = Path(__file__).parents[1]
# What `python -m venv` and `python -m pip` would find in the checkout before Python's own.
SHADOWS = ("typing.py", "types.py", "venv.py", "pip.py", "ensurepip.py")
yaml = pytest.importorskip("yaml")
BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None, reason="no bash")


@pytest.fixture(scope="module")
def action() -> Any:
    return yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


def test_the_schema(action: Any) -> None:
    (schema,) = schemas("github-action.json")
    assert violations(schema, action) == []
    assert violations(schema, {**action, "runs": {"using": "composite"}}) != []


def test_inputs_are_used_and_exist(action: Any) -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(action["inputs"])
    # What users write reaches the shell as data, never as part of a script.
    for step in action["runs"]["steps"]:
        assert "${{" not in step.get("run", "")


@dataclass
class Runner:
    """What a runner gives a step: a checkout, a folder for temporary files, and files for outputs."""

    action: Any
    source: Path
    workspace: Path
    temp: Path
    installed: dict[str, str] = field(default_factory=dict)  # outputs of the step that installs, run once

    def run(self, inputs: Mapping[str, str]) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
        """Run the action's shell steps until one fails; the last step's process and the action's outputs."""
        given = {**self._defaults(), **inputs}
        known = self._known(given)
        done = None
        for step in self.action["runs"]["steps"]:
            if "run" not in step:
                continue
            if step["id"] == "install" and not given["version"] and self.installed:
                known |= self.installed
                continue
            done, outputs = self._step(step, known)
            if step["id"] == "install" and not given["version"]:
                self.installed = {f"steps.install.outputs.{name}": value for name, value in outputs.items()}
            known |= {f"steps.{step['id']}.outputs.{name}": value for name, value in outputs.items()}
            if done.returncode:
                break
        return done, {name: filled(item["value"], known) for name, item in self.action["outputs"].items()}

    def outputs(self, step_id: str, inputs: Mapping[str, str]) -> dict[str, str]:
        """The outputs of one step that needs no other's."""
        known = self._known({**self._defaults(), **inputs})
        (step,) = (step for step in self.action["runs"]["steps"] if step.get("id") == step_id)
        return self._step(step, known)[1]

    def _defaults(self) -> dict[str, str]:
        return {name: str(given.get("default", "")) for name, given in self.action["inputs"].items()}

    def _known(self, given: Mapping[str, str]) -> dict[str, str]:
        """The expressions that the action may use, and their values."""
        contexts = {
            "github.action_path": str(self.source),
            "runner.temp": str(self.temp),
            "steps.python.outputs.python-path": sys.executable,
            "steps.python.outputs.python-version": "3.12.1",
        }
        return contexts | {f"inputs.{name}": value for name, value in given.items()}

    def _step(
        self, step: Any, known: Mapping[str, str]
    ) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
        output, summary = self.temp / "output", self.temp / "summary.md"
        output.write_text("")
        summary.write_text("")
        script = self.temp / "step.sh"
        script.write_text(step["run"])
        folder = self.workspace / filled(step.get("working-directory", "."), known)
        extra = {name: filled(value, known) for name, value in step["env"].items()}
        extra |= {
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_REPOSITORY": "someone/project",
            "GITHUB_SHA": "f" * 40,
            "RUNNER_OS": "Linux",
            "RUNNER_ARCH": "X64",
        }
        # The command that runners use for `shell: bash`.
        command = [str(BASH), "--noprofile", "--norc", "-eo", "pipefail", str(script)]
        env = {name: value for name, value in environment(**extra).items() if name != "PYTHONPATH"}
        done = run_command(*command, cwd=folder, env=env, timeout=280)
        return done, dict(line.split("=", 1) for line in output.read_text().splitlines())


def filled(text: str, known: Mapping[str, str]) -> str:
    return re.sub(r"\$\{\{\s*(.*?)\s*\}\}", lambda found: known.get(found[1], ""), text)


@pytest.fixture(scope="module")
def runner(action: Any, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """The action as it stands now at a ref, and a checkout with one finding in each of two folders."""
    top = tmp_path_factory.mktemp("runner")
    sources(top / "action")
    for name, text in {"src/train.py": HELD, "my scripts/train.py": HELD, "clean/clean.py": CLEAN}.items():
        path = top / "checkout" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    for name in SHADOWS:
        (top / "checkout" / name).write_text("open(__file__ + '.ran', 'w').close()\n")
    (top / "temp").mkdir()
    return Runner(action, top / "action", top / "checkout", top / "temp")


def test_installing_runs_nothing_of_the_checkout(runner: Runner) -> None:
    """Which may be a stranger's pull request. Where there is nothing to say nothing is."""
    done, outputs = runner.run({"paths": "clean"})
    assert (done.returncode, done.stdout, outputs["findings"]) == (0, "", "0")
    assert (runner.temp / "summary.md").read_text() == ""
    assert list(runner.workspace.glob("*.ran")) == []


def test_annotations_and_the_summary_of_the_job(runner: Runner) -> None:
    """A table by rule, whose links lead to the lines at the commit of the job."""
    done, outputs = runner.run({"paths": "src\n'my scripts'", "args": "--select GPU1 --fail-on info"})
    assert done.returncode == 1, done.stderr
    files = re.findall(r"^::notice title=GPU101 held-graph,file=([^,]+),line=11", done.stdout, re.M)
    assert sorted(files) == ["my scripts/train.py", "src/train.py"]
    assert outputs == {"sarif": "", "findings": "2"}
    blob = f"https://github.example/someone/project/blob/{'f' * 40}"
    link = f"[my scripts/train.py:11]({blob}/my%20scripts/train.py#L11)"
    assert link in (runner.temp / "summary.md").read_text(encoding="utf-8")


def test_caches(action: Any, runner: Runner) -> None:
    """What the cache steps name is what pip and gpulint use, and the keys change with what they depend on."""
    runner.run({"paths": "clean"})
    paths = {
        filled(step["with"]["path"], {"runner.temp": str(runner.temp)})
        for step in action["runs"]["steps"]
        if step.get("uses", "").startswith("actions/cache/")
    }
    assert paths == {str(runner.temp / "gpulint-pip"), str(runner.temp / "gpulint-cache")}
    assert any((runner.temp / "gpulint-cache").iterdir())
    (install,) = (step for step in action["runs"]["steps"] if step.get("id") == "install")
    # pip leaves it out where it is told to keep none
    assert '--cache-dir "$RUNNER_TEMP/gpulint-pip"' in install["run"]
    keys = [
        runner.outputs("caches", given)
        for given in ({}, {}, {"version": "9.9"}, {"args": "--select GPU1"}, {"cache": "false"})
    ]
    assert keys[0] == keys[1]
    assert keys[0]["packages"].startswith("gpulint-packages-Linux-X64-3.12.1-")
    assert keys[2]["packages"] != keys[0]["packages"] == keys[3]["packages"]
    assert keys[3]["findings"] != keys[0]["findings"]
    # One that fails for findings keeps them too; one that could not check keeps nothing.
    kept = next(step for step in action["runs"]["steps"] if step["name"] == "Keep what gpulint found")
    assert "!cancelled()" in kept["if"]
    assert "steps.check.outputs.findings != ''" in kept["if"]
    for step in action["runs"]["steps"]:
        assert ("inputs.cache == 'true'" in step.get("if", "")) == bool(
            re.search("cache", step.get("uses", "") + step.get("id", ""))
        ), step["name"]


def test_sarif_of_a_folder_is_relative_to_the_checkout(runner: Runner) -> None:
    done, outputs = runner.run(
        {"output-format": "sarif", "working-directory": "src", "args": "--fail-on info"}
    )
    assert done.returncode == 1, done.stderr
    report = json.loads(Path(outputs["sarif"]).read_text(encoding="utf-8"))
    (schema,) = schemas("sarif-2.1.0.json")
    assert violations(schema, report) == []
    (result,) = report["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "src/train.py"
    assert (
        report["runs"][0]["originalUriBaseIds"]["SRCROOT"]["uri"]
        == f"file://{os.path.realpath(runner.workspace)}/"
    )


SHORT = """
import torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(100):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
"""


@needs_torch
@pytest.mark.parametrize(("limit", "status"), [("1GiB", 0), ("1KiB", 1)])
def test_a_run_is_held_against_limits(runner: Runner, limit: str, status: int) -> None:
    (runner.workspace / "clean" / "short.py").write_text(SHORT)
    words = f"--python {sys.executable} --device cpu --steps 5 --max-peak {limit} clean/short.py"
    done, _ = runner.run({"paths": "clean", "verify": words})
    assert done.returncode == status, done.stderr
    assert ("exceeded --max-peak" in done.stdout) is bool(status)
    assert "### GPU memory of `clean/short.py`" in (runner.temp / "summary.md").read_text()


def test_wrong_inputs_say_so(runner: Runner) -> None:
    done, _ = runner.run({"output-format": "yaml"})
    assert done.returncode == 2
    assert "::error::gpulint: output-format is github or sarif, not yaml" in done.stdout
    done, _ = runner.run({"args": "--select 'GPU1"})
    assert done.returncode != 0
    assert done.stdout == ""
    assert "quote" in done.stderr
    done, _ = runner.run({"args": "--selekt GPU1"})
    assert done.returncode == 2
    assert "--selekt" in done.stderr
    done, _ = runner.run({"args": "$(touch owned) `touch owned` ; touch owned"})
    assert done.returncode == 2  # words like all others: files that are not there
    assert "no such file" in done.stdout
    assert not list(runner.workspace.rglob("owned"))


def test_a_version_from_the_index(runner: Runner) -> None:
    done, _ = runner.run({"version": "0.0.0.dev999"})
    assert done.returncode == 1
    assert "gpulint==0.0.0.dev999" in done.stderr
