"""SECURITY.md promises what is tested here, and nothing else."""

import re
from pathlib import Path

HERE = Path(__file__).parent
PROMISE = re.compile(r"^- .+\.((?: \[test_\w+\.py\]\(tests/hostile/test_\w+\.py\))+)$", re.M)


def test_each_promise_names_its_tests_and_each_test_is_promised() -> None:
    text = (HERE.parents[1] / "SECURITY.md").read_text()
    promises = PROMISE.findall(text)
    assert len(promises) == text.count("\n- "), "a promise is one line, and ends with its tests"
    named = {
        file for promise in promises for file in re.findall(r"\[(\w+\.py)\]\(tests/hostile/\1\)", promise)
    }
    assert named == {path.name for path in HERE.glob("test_*.py")} - {Path(__file__).name}
