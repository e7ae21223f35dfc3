"""The engine that is asked: what reaches a use, what an expression gives, who uses it, and that nothing more is worked out, nor any file
parsed by libcst of which no rule speaks."""

import ast
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import libcst as cst
import pytest
from asked_engine import engine, last_value
from gpulint.rules import all_rules

from gpulint.analysis import asked
from gpulint.analysis.evaluate.consumers import consumers
from gpulint.analysis.syntax.flow import ENTRY, Flow
from gpulint.findings import Confidence, Severity
from gpulint.lint.linter import Text, claimed, lint_text
from gpulint.rule import Claimed, Report, Rule, RuleSet


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


# -- libcst parses what a rule speaks about, once ------------------------------------------------------------


RULES = RuleSet(all_rules())

CLEAN = """\
import torch
from torch import nn

model = torch.hub.load("pytorch/vision", "resnet50")
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train(loader):
    total = 0.0
    for inputs, targets in loader:
        loss = criterion(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(total / len(loader))
"""
LEAKY = CLEAN.replace("loss.item()", "loss")


def test_a_file_with_findings_is_analysed_and_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []
    made, parse = asked.Engine, cst.parse_module
    monkeypatch.setattr(asked, "Engine", lambda *given: (counted.append("analysed"), made(*given))[1])
    monkeypatch.setattr(cst, "parse_module", lambda *given: (counted.append("parsed"), parse(*given))[1])
    found = lint_text(LEAKY, "train.py", RULES)
    assert found
    assert counted[:2] == ["analysed", "parsed"]
    # What follows is each fix's own proof that its text parses.
    assert counted.count("analysed") == 1
    counted.clear()
    assert lint_text(CLEAN, "train.py", RULES) == []
    assert counted == ["analysed"]


class LooksIntoNodes(Rule):
    """A rule of a project that reads the tree itself."""

    code = "X001"
    name = "looks-into-nodes"
    severity = Severity.WARNING
    triggers = ((b"torch",),)

    def claims(self, asked: Any, options: Mapping[str, Any]) -> Iterator[Claimed]:
        assert isinstance(asked.tree, cst.Module)
        for second in (asked.tree.body[1], asked.file.tree.body[1]):
            yield Claimed(second, "", (), lambda at=second: Report(at, "the second statement"))


def test_rule_that_looks_into_nodes_gets_those_of_libcst() -> None:
    found = lint_text(CLEAN, "train.py", RuleSet((LooksIntoNodes,)))
    assert [(one.line, one.column, one.end_line) for one in found] == [(2, 1, 2), (2, 1, 2)]


def test_invalid_escapes_in_the_code_warn_nobody(recwarn: pytest.WarningsRecorder) -> None:
    assert lint_text(CLEAN + 'pattern = "\\d"\n', "train.py", RULES) == []
    assert not recwarn.list
