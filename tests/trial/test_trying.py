"""Trials of small scripts from end to end: what is kept, what is said, what is left alone."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from making import finding, fixes
from test_planted import HEAD, MODEL

from gpulint.claims import Claim
from gpulint.reports.markdown import markdown
from gpulint.reports.page import page
from gpulint.reports.terminal import write
from gpulint.reports.trial import document
from gpulint.runtime.parent.runner import Run
from gpulint.trial.plan import Trial
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


Tried = Callable[..., Trial]
Change = tuple[str, str]  # what a fix takes out, and what it puts there


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "train.py"


@pytest.fixture
def tried(script: Path, execute: Execute) -> Tried:
    """Tries fixes of a script with this text."""

    def tried(text: str, *changes: Change, timeout: float | None = None, **given: Any) -> Trial:
        script.write_text(text, encoding="utf-8")
        what = Run(str(script), timeout=timeout, cwd=str(script.parent))
        safe, claim = given.pop("safe", True), given.pop("claim", None)
        return try_fixes(
            what, fixes(*(finding(script, *one, safe, claim) for one in changes)), execute, **given
        )

    return tried


def statuses(trial: Trial) -> list[str]:
    return [one.status for one in trial.judged]


def test_a_fix_that_pays_is_kept_and_written_once_asked(script: Path, tried: Tried) -> None:
    trial = tried(LOOP, RIGHT)
    assert statuses(trial) == ["pays"]
    nodes = next(gain for gain in trial.gains if gain.unit == "nodes")
    assert nodes.before > 50
    assert nodes.after == 0
    assert trial.exit_code == 1
    assert "bit for bit" in trial.noise
    script.write_text(LOOP + "# edited\n", encoding="utf-8")
    with pytest.raises(NotWritten, match="has changed since the trial began"):
        apply(trial)
    assert script.read_text(encoding="utf-8") == LOOP + "# edited\n"
    script.write_text(LOOP, encoding="utf-8")
    written = apply(trial)
    assert script.read_text(encoding="utf-8") == LOOP.replace(*RIGHT)
    assert (written.exit_code, written.written) == (0, (str(script),))


def test_the_wrong_one_of_two_is_told_from_the_right_one(script: Path, tried: Tried) -> None:
    trial = tried(LOOP, WRONG, RIGHT)
    assert statuses(trial) == ["changes the result", "pays"]
    assert trial.texts == {str(script): LOOP.replace(*RIGHT)}
    assert "what goes backward" in trial.judged[0].text
    told = document(trial, dry=True)
    out = io.StringIO()
    write(told, out)
    for shown in (out.getvalue(), markdown(told)):
        assert "+    kept.append(loss.item())" in shown
        assert "called safe and is not" in shown
        assert "Before" in shown
    assert 'class="s-allocated-before"' in page(told)
    assert "```diff" in markdown(told)


def test_a_fix_without_effect_is_not_applied(tried: Tried) -> None:
    trial = tried(LOOP, ("out = model(x)", "out = (model)(x)"))
    assert statuses(trial) == ["changes nothing"]
    assert trial.texts == {}
    assert (trial.left.drifting, trial.exit_code) == (True, 1)  # `kept` grows as before


def test_a_line_that_does_not_run_is_not_reached(tried: Tried) -> None:
    trial = tried(LOOP + "if kept is None:\n    kept = [kept]\n", ("kept = [kept]", "kept = []"))
    assert statuses(trial) == ["not reached"]
    assert len(trial.attempts) == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError('no data')\n", "ValueError: no data"),
        ("import sys\nsys.exit(3)\n", "sys.exit(3)"),
        ("print('no step')\n", "without a step"),
    ],
)
def test_a_script_that_fails_by_itself_is_not_tried(tried: Tried, body: str, said: str) -> None:
    trial = tried(HEAD + body, ("y = torch.randint(0, 4, (8,))", "y = None"))
    assert said in trial.failure
    assert (trial.exit_code, len(trial.attempts)) == (2, 1)


def test_a_fix_that_hangs_breaks(tried: Tried) -> None:
    assert statuses(tried(LOOP, (RIGHT[0], "import time; time.sleep(60)"), timeout=5.0)) == ["breaks"]


# -- noise -------------------------------------------------------------------------------------------------------


def test_what_is_not_seeded_is_seeded(tried: Tried) -> None:
    drawing = LOOP.replace("torch.manual_seed(0)\n", "import random\n").replace(
        "out = model(x)", "out = model(x * random.random() + torch.rand(8, 16))"
    )
    trial = tried(drawing, RIGHT)
    assert "bit for bit" in trial.noise
    assert statuses(trial) == ["pays"]


SHAKY = LOOP.replace("out = model(x)", "out = model(x * (1 + entropy() * {size}))").replace(
    "import torch\n",
    "import os\nimport torch\ndef entropy():\n    return int.from_bytes(os.urandom(2), 'big') / 65536 - 0.5\n",
    1,
)


def test_noise_is_said_and_compared_within(tried: Tried) -> None:
    trial = tried(SHAKY.format(size="1e-4"), WRONG, RIGHT)
    assert "differ" in trial.noise
    assert statuses(trial) == ["changes the result", "pays"]


def test_a_change_that_is_not_seen_again_was_noise(script: Path, tried: Tried) -> None:
    """The third run is an outlier of the script itself: ten times its noise, and more."""
    counting = "import pathlib\nruns = pathlib.Path('runs')\nruns.open('a').write('x')\nnumber = len(runs.read_text())\n"
    drifting = "out = model(x * (1 + 1e-7 * number + (1e-3 if number == 3 else 0)))"
    text = counting + LOOP.replace("out = model(x)", drifting)
    trial = tried(text, RIGHT)
    assert statuses(trial) == ["pays"]
    assert trial.attempts[-1].label.endswith("once more")
    script.with_name("runs").unlink()
    assert statuses(tried(text, WRONG)) == ["changes the result"]


def test_where_noise_hides_everything_only_what_is_proven_is_kept(tried: Tried) -> None:
    for safe, status in ((True, "pays"), (False, "cannot be compared")):
        trial = tried(SHAKY.format(size="5"), RIGHT, safe=safe)
        assert statuses(trial) == [status]
        assert "something else each time" in trial.doubts[0]
        assert bool(trial.texts) is safe


# -- time --------------------------------------------------------------------------------------------------------


def test_time_counts_for_a_fix_that_claims_it(tried: Tried) -> None:
    waits = "import time; time.sleep(0.05)"
    for claim, status in ((Claim("time"), "pays"), (Claim("drift"), "changes nothing")):
        trial = tried(LOOP.replace("kept.append(loss)", waits), (waits, "pass"), claim=claim)
        assert statuses(trial) == [status]
        assert (trial.attempts[-1].label == "as it is, for its time") is (status == "pays")


# -- files -------------------------------------------------------------------------------------------------------


def test_imported_modules_are_written_with_their_encodings_and_line_ends(
    script: Path, execute: Execute
) -> None:
    helper = script.with_name("helper.py")
    text = "# -*- coding: latin-1 -*-\r\n# caf\xe9\r\nhistory = []\r\ndef keep(loss):\r\n    history.append(loss)\r\n"
    helper.write_bytes(text.encode("latin-1"))
    script.write_text(
        LOOP.replace("kept.append(loss)", "from helper import keep; keep(loss)"), encoding="utf-8"
    )
    change = ("history.append(loss)", "history.append(loss.item())")
    found = finding(helper, *change, encoding="latin-1")
    trial = apply(try_fixes(Run(str(script)), fixes(found), execute))
    assert statuses(trial) == ["pays"]
    assert trial.written == (str(helper),)
    assert helper.read_bytes() == text.replace(*change).encode("latin-1")


def test_a_module_is_run_as_such(tmp_path: Path, execute: Execute) -> None:
    package = tmp_path / "project"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    path = package / "train.py"
    path.write_text(LOOP, encoding="utf-8")
    run = Run("project.train", module=True, cwd=str(tmp_path))
    assert statuses(try_fixes(run, fixes(finding(path, *RIGHT)), execute)) == ["pays"]
