"""The engine that is asked: what reaches a use, what an expression gives, who uses it, and that nothing more is worked out."""

from __future__ import annotations

import ast
import sys

import pytest
from asked_engine import engine, last_value
from gpulint.rules import all_rules

from gpulint.analysis.evaluate.consumers import consumers
from gpulint.analysis.syntax.flow import ENTRY, Flow
from gpulint.findings import Confidence
from gpulint.lint.linter import Text, claimed


def flow_of(text: str) -> Flow:
    return Flow(ast.parse(text).body[0])


def rows(flow: Flow, key: str) -> list[list[int]]:
    """For each use of a key the rows of the definitions that reach it; 0 where it may be none of the function's own."""
    return [
        sorted(0 if one is ENTRY else one.node.lineno for one in flow.reaching(use)) for use in flow.uses[key]
    ]


@pytest.mark.parametrize(
    ("body", "key", "expected"),
    [
        ("a = 1\n for b in x:\n  a\n  a = 2\n a", "a", [[2, 5], [2, 5]]),
        ("while True:\n  a = 1\n  if a: break\n a", "a", [[3], [3]]),
        ("for b in x:\n  if b: continue\n  a = 1\n a", "a", [[0, 4]]),
        ("try:\n  a = 1\n  a = 2\n except E: a\n", "a", [[0, 3, 4]]),
        ("x.a = 1\n x = f()\n x.a", "x.a", [[0]]),
        ("x[0].detach_()\n x[0]", "x[0]", [[0], [2]]),
        ("a = [a for a in x]\n a", "a", [[2], [2]]),
        ("for b in c:\n  if x == 'u': a = 1\n  else: a = 2\n if x != 'u': a", "a", [[0, 4]]),
        ("a = 1\n if x and y: a = 2\n if not x: a\n if not y: a", "a", [[2], [2]]),
        ("a = 1\n if x: a = 2\n if not x: return\n a", "a", [[2, 3]]),
        ("a = 1\n if not x: a = 2\n if not x: return\n a", "a", [[2]]),
        ("for b in c:\n  if b: a = 1\n  if not b: a", "a", [[0, 3]]),
        ("if x: a = 1\n x = 2\n if not x: a", "a", [[0, 2]]),
        ("if self.x: a = 1\n f()\n if not self.x: a", "a", [[0, 2]]),
    ],
)
def test_what_reaches_a_use(body: str, key: str, expected: list[list[int]]) -> None:
    assert rows(flow_of(f"def f(x):\n {body}"), key) == expected


def test_what_comes_after_a_return_is_not_reached() -> None:
    flow = flow_of("def f(x):\n return x\n x = 1")
    assert [statement.lineno for statement in flow.unreachable] == [3]
    assert not flow.falls_through


def test_a_way_that_values_share_is_gone_once() -> None:
    """Each of thirty values goes into the same long sum: what has been found for the first serves the others."""
    sums = "".join(f"    total = total * 2 + x{i}\n" for i in range(30))
    given = "".join(f"    x{i} = net(xs[{i}])\n" for i in range(30))
    file, evaluator = engine(f"def f(net, xs):\n{given}    total = 0\n{sums}    total.backward()\n")
    (function,) = file.functions
    frame = evaluator.root(function)
    calls = function.flow.calls["net"]
    ways = [{one.role for one in consumers(evaluator, call, frame, "graph")} for call in calls]
    assert ways == [{"backward"}] * 30
    assert evaluator.followed < 400


def test_only_what_is_asked_is_worked_out() -> None:
    """A file of many functions, one of which empties the cache: the others are not bound."""
    other = "".join(f"def other{i}(a, b):\n    return a + b * {i}\n" for i in range(50))
    text = (
        f"import torch\n{other}def train(net, opt, xs):\n    for x in xs:\n        net(x).mean().backward()\n"
        "        opt.step()\n        torch.cuda.empty_cache()\n"
    )
    (rule,) = (rule for rule in all_rules() if rule.code == "GPU501")
    looked = Text(text, "train.py", None)
    (claim,) = claimed(looked, rule, {})
    assert Confidence.with_doubts([]) is Confidence.HIGH
    assert not [answer for answer in claim.answers if answer.verdict.value != "proven"]
    assert looked.asked.file.bound <= 3
    assert looked.asked.evaluator.evaluated <= 60


def test_a_deep_expression_is_no_deeper_than_the_stack() -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(12_000)
    try:
        assert last_value("x = 1\n" + " + ".join(["x"] * 300)).kind == "number"
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize(
    ("key", "kind"), [("'scores'", "tensor"), ("'right'", "number"), ("'none'", "unknown")]
)
def test_what_goes_by_another_key_is_not_what_is_asked_for(key: str, kind: str) -> None:
    text = (
        "import torch\ndef f(x, y):\n    out = {'scores': torch.relu(x)}\n    out['right'] = (x > y).float().mean().item()\n"
        f"    return out\nf(torch.ones(2), 1)[{key}]"
    )
    assert last_value(text).kind == kind
