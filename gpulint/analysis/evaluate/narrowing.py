"""What a test of a value's type says of it where it is used: in the arms of the test, and after an arm that made something else of it."""

from __future__ import annotations

import ast
from typing import Any

from gpulint.analysis.domain.values import Graph, Value
from gpulint.analysis.models.table import table
from gpulint.analysis.syntax.flow import Definition, Flow
from gpulint.analysis.syntax.nodes import key_of, last_name

_TESTS = frozenset(("is_tensor", "isinstance", "hasattr", "type"))


def without_graph(value: Value) -> Value:
    """The value where it is known to be no tensor."""
    kind = "number" if value.kind == "tensor" else value.kind
    return value.but(kind=kind, graph=Graph.NONE, origins=frozenset(), assumptions=())


def is_no_tensor(node: ast.Name, definition: Definition, flow: Flow) -> bool:
    """Whether what a definition gave is no tensor where a use reads it, by the tests of its type on the way."""
    if flow.calls.keys().isdisjoint(_TESTS):
        return False
    below = node
    for above in flow.ancestors(node):
        if isinstance(above, ast.IfExp) and below is not above.test:
            if says_tensor(above.test, node.id) is (below is not above.body):
                return True
        below = above
    if any(says_tensor(test, node.id) is (not wanted) for test, wanted in flow.conditions(node)):
        return True
    others = (one for one in flow.reaching(node) if one is not definition)
    return any(_made_of_tensors(other, definition, node, flow) for other in others)


def _made_of_tensors(other: Definition, definition: Definition, node: ast.Name, flow: Flow) -> bool:
    """Whether another definition takes the place of this one wherever it is a tensor: `if is_tensor(x): x = x.item()`."""
    block = flow.blocks.get(other.statement)
    if block is None or not isinstance(block.owner, ast.If):
        return False
    before = flow.order.get(definition.statement, -1) < flow.order[block.owner]
    after = block.owner not in [one.owner for one in flow.around(node)]
    return before and after and says_tensor(block.owner.test, node.id) is (block.arm == "body")


def says_tensor(test: Any, key: str) -> bool | None:
    """Whether a test says that a key is a tensor where it holds (True), where it does not (False), or nothing of it."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = says_tensor(test.operand, key)
        return None if inner is None else not inner
    if isinstance(test, ast.Call) and test.args and key_of(test.args[0]) == key:
        name = last_name(test.func)
        if name == "is_tensor":
            return True
        if name == "isinstance" and len(test.args) == 2:
            return _of_type(test.args[1])
        if name == "hasattr" and len(test.args) == 2 and isinstance(test.args[1], ast.Constant):
            return test.args[1].value in table().knows("asked.whether-tensor") or None
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Call):
        asked = test.left
        if last_name(asked.func) == "type" and asked.args and key_of(asked.args[0]) == key:
            found = _of_type(test.comparators[0])
            return found if found is None or isinstance(test.ops[0], (ast.Is, ast.Eq, ast.In)) else not found
    return None


def _of_type(node: Any) -> bool | None:
    names = [last_name(one) for one in (node.elts if isinstance(node, ast.Tuple) else [node])]
    if any(name in table().knows("types.tensor") for name in names):
        return True
    return False if table().knows("types.plain").keys() >= set(names) else None
