"""Programs that are made to be followed for ever. What is done for one is counted and never timed, so that the tests are the
same on every machine; whoever changes the analysis is held to them."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from gpulint import Config, check_source
from gpulint.analysis.file.calls import effort
from gpulint.answers import NO_FURTHER

EVERYTHING = Config.from_mapping({"confidence": "low"})


def fan(functions: int, calls: int) -> str:
    """Functions each of which calls the next ones, with a container that all of them fill."""
    bodies = (
        f"def f{i}(m, x, acc):\n"
        + "".join(f"    acc.append(f{j}(m, x, acc))\n" for j in range(i + 1, min(i + 1 + calls, functions)))
        + "    return m(x)\n"
        for i in range(functions)
    )
    start = "def main(m, xs):\n    m.eval()\n    acc = []\n    for x in xs:\n        f0(m, x, acc)\n"
    return "import torch\n" + "".join(bodies) + start


def among_all(functions: int, _: int = 0) -> str:
    """Functions that all call each other."""
    calls = "".join(f"    acc.append(f{j}(m, x, acc))\n" for j in range(functions))
    bodies = "".join(f"def f{i}(m, x, acc):\n{calls}    return m(x)\n" for i in range(functions))
    return f"import torch\n{bodies}def main(m, xs):\n    m.eval()\n    acc = []\n    for x in xs:\n        f0(m, x, acc)\n"


def chained(calls: int) -> str:
    return f"import torch\ndef f(m, xs):\n    acc = []\n    for x in xs:\n        acc.append(m(x){'.relu()' * calls})\n"


def backwards(count: int) -> str:
    step = "        loss = m(x)\n        loss.backward(retain_graph=True)\n        opt.step()\n"
    return "import torch\ndef f(m, xs, opt):\n    for x in xs:\n" + step * count


def work(source: str) -> int:
    """How many functions of Python are called to lint a text."""
    count = 0

    def called(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    gc.disable()
    sys.setprofile(called)
    try:
        check_source(source, "program.py")
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


@pytest.fixture(autouse=True)
def warm() -> None:
    check_source(fan(3, 2), "program.py")


@pytest.mark.parametrize(
    "source", [fan(60, 8), among_all(24), backwards(120)], ids=["fan", "all", "backwards"]
)
def test_a_kilobyte_takes_no_more_work_than_another(source: str) -> None:
    assert work(source) < 200_000 * len(source) / 1_000


@pytest.mark.parametrize(
    ("made", "small"),
    [(lambda n: fan(n, 8), 20), (chained, 250), (backwards, 40)],
    ids=["fan", "chain", "backwards"],
)
def test_work_grows_with_the_file(made: Callable[[int], str], small: int) -> None:
    assert work(made(4 * small)) < 8 * work(made(small))


def test_where_a_question_ends_for_its_length_is_a_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "FOR_A_FUNCTION", 100)
    found = check_source(fan(20, 8), "program.py", config=EVERYTHING)
    ended = [finding for finding in found if NO_FURTHER in finding.doubts]
    assert ended
    assert {finding.confidence.value for finding in ended} == {"low"}
    assert not check_source(fan(20, 8), "program.py"), (
        "with high confidence nothing is told of what was not looked into"
    )


def test_what_a_rule_looks_for_without_questions_ends_with_a_doubt_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(effort, "FOR_A_FUNCTION", 100)
    found = check_source(backwards(30), "program.py", config=EVERYTHING)
    assert "needless-retain-graph was not looked for to the end" in {finding.message for finding in found}


def test_one_function_does_not_take_the_effort_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort, "FOR_A_FUNCTION", 2_000)
    held = "def train(m, xs, opt):\n    total = 0\n    for x in xs:\n        loss = m(x).mean()\n        loss.backward()\n"
    source = f"{fan(40, 8)}{held}        opt.step()\n        total += loss\n"
    assert "GPU101" in {finding.code for finding in check_source(source, "program.py")}


def test_chains_that_take_the_parser_minutes_are_named() -> None:
    held = "def f(m, xs):\n    acc = []\n    for x in xs:\n        y = m(x)\n        y.backward()\n        acc.append(y)\n"
    for chain in ("    z = m(xs)" + ".view(1)" * 1_000, *(["    z = " + "m(" * 190 + "xs" + ")" * 190] * 1)):
        found = check_source(f"import torch\n{held}" + f"{chain}\n" * 12, "program.py")
        assert [finding.code for finding in found] == ["GPU000"]
        assert "chained too deeply" in found[0].message
