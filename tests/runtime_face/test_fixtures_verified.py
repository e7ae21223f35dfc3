"""Every `# expect:` line of the fixtures, judged by running it: no line may be refuted, or left unreached."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest
import warm

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from verify_fixtures import Outcome, expected, scripts, verify_fixture  # noqa: E402

SCRIPTS = scripts()


def test_there_are_lines_to_judge() -> None:
    assert sum(len(expected(script)) for script in SCRIPTS) >= 30


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest) -> Iterator[dict[Path, Future[Outcome]]]:
    """Every fixture whose test was selected, run two at a time: each is a process of one thread."""
    calls = [getattr(item, "callspec", None) for item in request.session.items]
    wanted = {call.params["script"] for call in calls if call is not None and "script" in call.params}
    with ThreadPoolExecutor(2) as pool, pytest.MonkeyPatch.context() as patched:
        warm.start_scripts_warm(patched.setattr)
        yield {script: pool.submit(verify_fixture, script, "cpu") for script in SCRIPTS if script in wanted}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.parent.name + "-" + path.stem)
def test_the_run_bears_out_what_is_expected(script: Path, outcomes: dict[Path, Future[Outcome]]) -> None:
    outcome = outcomes[script].result()
    assert len(outcome.verification.verdicts) == len(expected(script))
    assert outcome.problems() == []
