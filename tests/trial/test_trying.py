"""Trials of small scripts from end to end: what is kept, what is said, what is left alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from making import finding, fixes
from planted import HEAD, MODEL

from gpulint.claims import Claim
from gpulint.runtime.parent.runner import Run
from gpulint.trial.trying import Execute, NotWritten, apply, try_fixes

LOOP = (
    HEAD
    + MODEL
    + """\
kept = []
for step in range(30):
    out = model(x)
    loss = F.cross_entropy(out, y)
    kept.append(loss)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
)
RIGHT = ("kept.append(loss)", "kept.append(loss.item())")
WRONG = ("loss = F.cross_entropy(out, y)", "loss = F.cross_entropy(out, y) * 0.5")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(LOOP, encoding="utf-8")
    return path


def test_a_fix_that_pays_is_kept_and_written_once_asked(script: Path, execute: Execute) -> None:
    trial = try_fixes(Run(str(script)), fixes(finding(script, *RIGHT)), execute)
    (judged,) = trial.judged
    assert judged.status == "pays"
    nodes = next(gain for gain in trial.gains if gain.unit == "nodes")
    assert nodes.before > 50
    assert nodes.after == 0
    assert trial.exit_code == 1
    assert script.read_text(encoding="utf-8") == LOOP
    written = apply(trial)
    assert script.read_text(encoding="utf-8") == LOOP.replace(*RIGHT)
    assert (written.exit_code, written.written) == (0, (str(script),))
    assert "bit for bit" in trial.noise


def test_the_wrong_one_of_two_is_told_from_the_right_one(script: Path, execute: Execute) -> None:
    both = fixes(finding(script, *WRONG), finding(script, *RIGHT))
    trial = try_fixes(Run(str(script)), both, execute)
    assert [one.status for one in trial.judged] == ["changes the result", "pays"]
    assert trial.texts == {str(script): LOOP.replace(*RIGHT)}
    assert "what goes backward" in trial.judged[0].text


def test_few_runs_halve_instead_of_trying_each(script: Path, execute: Execute) -> None:
    numbers = ("optimizer.zero_grad()", "optimizer.zero_grad(set_to_none=True)")
    three = fixes(finding(script, *WRONG), finding(script, *RIGHT), finding(script, *numbers))
    trial = try_fixes(Run(str(script)), three, execute, max_runs=6)
    assert len(trial.attempts) <= 6
    assert trial.judged[0].status in ("changes the result", "not tried")
    assert RIGHT[0] not in str(trial.texts) or not trial.texts


def test_a_fix_without_effect_is_not_applied(script: Path, execute: Execute) -> None:
    trial = try_fixes(Run(str(script)), fixes(finding(script, "out = model(x)", "out = (model)(x)")), execute)
    assert [one.status for one in trial.judged] == ["changes nothing"]
    assert trial.texts == {}
    assert trial.left is not None
    assert (trial.left.drifting, trial.exit_code) == (True, 1)  # `kept` grows as before


def test_a_line_that_does_not_run_is_not_reached(tmp_path: Path, execute: Execute) -> None:
    path = tmp_path / "train.py"
    path.write_text(LOOP + "if kept is None:\n    kept = [kept]\n", encoding="utf-8")
    trial = try_fixes(Run(str(path)), fixes(finding(path, "kept = [kept]", "kept = []")), execute)
    assert [one.status for one in trial.judged] == ["not reached"]
    assert len(trial.attempts) == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError('no data')\n", "ValueError: no data"),
        ("import sys\nsys.exit(3)\n", "sys.exit(3)"),
        ("print('no step')\n", "without a step"),
    ],
)
def test_a_script_that_fails_by_itself_is_not_tried(
    tmp_path: Path, execute: Execute, body: str, said: str
) -> None:
    path = tmp_path / "train.py"
    path.write_text(HEAD + body, encoding="utf-8")
    trial = try_fixes(
        Run(str(path)), fixes(finding(path, "y = torch.randint(0, 4, (8,))", "y = None")), execute
    )
    assert said in trial.failure
    assert (trial.exit_code, len(trial.attempts)) == (2, 1)


def test_a_fix_that_hangs_breaks(script: Path, execute: Execute) -> None:
    slow = finding(script, RIGHT[0], "import time; time.sleep(60)")
    trial = try_fixes(replace(Run(str(script)), timeout=5.0), fixes(slow), execute)
    assert [one.status for one in trial.judged] == ["breaks"]


# -- noise -------------------------------------------------------------------------------------------------------


def test_what_is_not_seeded_is_seeded(tmp_path: Path, execute: Execute) -> None:
    drawing = LOOP.replace("torch.manual_seed(0)\n", "import random\n").replace(
        "out = model(x)", "out = model(x * random.random() + torch.rand(8, 16))"
    )
    path = tmp_path / "train.py"
    path.write_text(drawing, encoding="utf-8")
    trial = try_fixes(Run(str(path)), fixes(finding(path, *RIGHT)), execute)
    assert "bit for bit" in trial.noise
    assert [one.status for one in trial.judged] == ["pays"]


SHAKY = LOOP.replace("out = model(x)", "out = model(x * (1 + entropy() * {size}))").replace(
    "import torch\n",
    "import os\nimport torch\ndef entropy():\n    return int.from_bytes(os.urandom(2), 'big') / 65536 - 0.5\n",
    1,
)


def test_noise_is_said_and_compared_within(tmp_path: Path, execute: Execute) -> None:
    path = tmp_path / "train.py"
    path.write_text(SHAKY.format(size="1e-4"), encoding="utf-8")
    both = fixes(finding(path, *WRONG), finding(path, *RIGHT))
    trial = try_fixes(Run(str(path)), both, execute)
    assert "differ" in trial.noise
    assert [one.status for one in trial.judged] == ["changes the result", "pays"]


def test_a_change_that_is_not_seen_again_was_noise(tmp_path: Path, execute: Execute) -> None:
    """The third run is an outlier of the script itself: ten times its noise, and more."""
    path = tmp_path / "train.py"
    counting = "import pathlib\nruns = pathlib.Path('runs')\nruns.open('a').write('x')\nnumber = len(runs.read_text())\n"
    drifting = "out = model(x * (1 + 1e-7 * number + (1e-3 if number == 3 else 0)))"
    path.write_text(counting + LOOP.replace("out = model(x)", drifting), encoding="utf-8")
    trial = try_fixes(Run(str(path), cwd=str(tmp_path)), fixes(finding(path, *RIGHT)), execute)
    assert [one.status for one in trial.judged] == ["pays"]
    assert [one.label for one in trial.attempts][-1].endswith("once more")
    (tmp_path / "runs").unlink()
    trial = try_fixes(Run(str(path), cwd=str(tmp_path)), fixes(finding(path, *WRONG)), execute)
    assert [one.status for one in trial.judged] == ["changes the result"]


def test_where_noise_hides_everything_only_what_is_proven_is_kept(tmp_path: Path, execute: Execute) -> None:
    path = tmp_path / "train.py"
    path.write_text(SHAKY.format(size="5"), encoding="utf-8")
    for safe, status in ((True, "pays"), (False, "cannot be compared")):
        trial = try_fixes(Run(str(path)), fixes(finding(path, *RIGHT, safe=safe)), execute)
        assert [one.status for one in trial.judged] == [status]
        assert "something else each time" in trial.doubts[0]
        assert bool(trial.texts) is safe


# -- time --------------------------------------------------------------------------------------------------------


def test_time_counts_for_a_fix_that_claims_it(tmp_path: Path, execute: Execute) -> None:
    path = tmp_path / "train.py"
    path.write_text(LOOP.replace("kept.append(loss)", "import time; time.sleep(0.05)"), encoding="utf-8")
    for claim, status in ((Claim("time"), "pays"), (Claim("drift"), "changes nothing")):
        slow = finding(path, "import time; time.sleep(0.05)", "pass", claim=claim)
        trial = try_fixes(Run(str(path)), fixes(slow), execute)
        assert [one.status for one in trial.judged] == [status]
        assert (trial.attempts[-1].label == "as it is, for its time") is (status == "pays")


# -- files -------------------------------------------------------------------------------------------------------


def test_fixes_of_imported_modules_are_tried_and_written(tmp_path: Path, execute: Execute) -> None:
    helper = tmp_path / "helper.py"
    helper.write_text("history = []\ndef keep(loss):\n    history.append(loss)\n", encoding="utf-8")
    path = tmp_path / "train.py"
    path.write_text(
        LOOP.replace("kept.append(loss)", "from helper import keep; keep(loss)"), encoding="utf-8"
    )
    found = finding(helper, "history.append(loss)", "history.append(loss.item())")
    trial = apply(try_fixes(Run(str(path)), fixes(found), execute))
    assert [one.status for one in trial.judged] == ["pays"]
    assert trial.written == (str(helper),)
    assert "loss.item()" in helper.read_text(encoding="utf-8")


def test_a_module_is_run_as_such(tmp_path: Path, execute: Execute) -> None:
    package = tmp_path / "project"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    path = package / "train.py"
    path.write_text(LOOP, encoding="utf-8")
    run = Run("project.train", module=True, cwd=str(tmp_path))
    trial = try_fixes(run, fixes(finding(path, *RIGHT)), execute)
    assert [one.status for one in trial.judged] == ["pays"]


def test_a_file_that_has_changed_meanwhile_is_not_written(script: Path, execute: Execute) -> None:
    trial = try_fixes(Run(str(script)), fixes(finding(script, *RIGHT)), execute)
    script.write_text(LOOP + "# edited\n", encoding="utf-8")
    with pytest.raises(NotWritten, match="has changed since the trial began"):
        apply(trial)
    assert script.read_text(encoding="utf-8") == LOOP + "# edited\n"


def test_other_encodings_and_line_ends_stay(tmp_path: Path, execute: Execute) -> None:
    text = ("# -*- coding: latin-1 -*-\n# caf\xe9\n" + LOOP).replace("\n", "\r\n")
    path = tmp_path / "train.py"
    path.write_bytes(text.encode("latin-1"))
    found = finding(path, *RIGHT, encoding="latin-1")
    trial = apply(try_fixes(Run(str(path)), fixes(found), execute))
    assert [one.status for one in trial.judged] == ["pays"]
    assert path.read_bytes() == text.replace(*RIGHT).encode("latin-1")


def test_reports_say_it_all(script: Path, execute: Execute) -> None:
    import io

    from gpulint.reports.markdown import markdown
    from gpulint.reports.page import page
    from gpulint.reports.terminal import write
    from gpulint.reports.trial import as_json, document

    both = fixes(finding(script, *WRONG), finding(script, *RIGHT))
    trial = try_fixes(Run(str(script)), both, execute)
    told = document(trial, dry=True)
    out = io.StringIO()
    write(told, out)
    for shown in (out.getvalue(), markdown(told)):
        assert "+    kept.append(loss.item())" in shown
        assert "changes the result" in shown
        assert "called safe and is not" in shown
        assert "Before" in shown
    data = json.loads(json.dumps(as_json(trial)))
    assert [one["status"] for one in data["fixes"]] == ["changes the result", "pays"]
    assert data["runs"]["after"]["ranks"]
    drawn = page(told)
    assert 'class="s-allocated-before"' in drawn
    assert "kept.append(loss.item())" in drawn
    assert "- **pays** `" in markdown(told)
    assert "```diff" in markdown(told)
