"""Every `# expect:` line of the fixtures, judged by running it: no line may be refuted, or left unreached."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from support import less_to_do

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from verify_fixtures import expected, scripts, verify_fixture  # noqa: E402

SCRIPTS = scripts()


def test_there_are_lines_to_judge() -> None:
    assert sum(len(expected(script)) for script in SCRIPTS) >= 30


@pytest.mark.usefixtures("warm_scripts")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.parent.name + "-" + path.stem)
def test_the_run_bears_out_what_is_expected(script: Path) -> None:
    outcome = verify_fixture(script, "cpu", arguments=less_to_do(script))
    assert len(outcome.verification.verdicts) == len(expected(script))
    assert outcome.problems() == []
