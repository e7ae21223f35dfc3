"""Small questions about what one expression or statement says, asked of its text alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Final

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.torch.backward import runs_backward
from gpulint.analysis.torch.methods import GIVES_ITSELF, WRAPS
from gpulint.analysis.torch.names import HOST_ATTRS
from gpulint.analysis.torch.sizes import LEAST_VOCABULARY, NAMES_OF_VOCABULARIES


def is_bound(statement: ir.Stmt, expr: ir.Expr) -> bool:
    """Whether the statement binds the expression rather than reads it."""
    if isinstance(statement, ir.Assign):
        stack = list(statement.targets)
    elif isinstance(statement, (ir.For, ir.AugAssign)):
        stack = [statement.target]
    else:
        return False
    while stack:
        target = stack.pop()
        if isinstance(target, ir.Seq):
            stack.extend(target.items)
        elif isinstance(target, ir.Wrapper):
            stack.append(target.value)
        elif isinstance(target, ir.Sub):
            stack.append(target.base)
        elif target is expr:
            return True
    return False


def rebinds(statement: ir.Stmt, name: str) -> bool:
    return isinstance(statement, ir.Assign) and any(name == part.path for part in targets(statement))


def may_give_number(function: ir.Function) -> bool:
    """Whether one way through a function gives a number: `return 0`, `return loss if loss > 0 else 0`, that by a name too."""
    results = [one.value for one in ir.statements(function.body) if isinstance(one, ir.Return)]
    names = {value.path for value in results if isinstance(value, ir.Name)}
    chosen = [
        one.value
        for one in ir.statements(function.body)
        if isinstance(one, ir.Assign) and any(target.path in names for target in targets(one))
    ]
    branches = [
        branch
        for value in (*results, *chosen)
        if isinstance(value, ir.Op) and value.op == "if"
        for branch in value.operands[1:]
    ]
    return any(_is_number(value) for value in (*results, *branches))


def chooses_result(function: ir.Function) -> bool:
    """Whether `if flag:` stands around a `return`, or `a if flag else b` in one, of a parameter."""
    params = {param.name for param in function.params}
    return any(
        isinstance(part, ir.Name) and part.id in params
        for test in _tests_of_results(function)
        for part in ir.walk(test)
    )


def _tests_of_results(function: ir.Function) -> Iterator[ir.Expr]:
    for statement in ir.statements(function.body):
        if isinstance(statement, ir.If):
            inner = (*statement.body, *statement.orelse)
            if any(isinstance(one, ir.Return) for one in ir.statements([*inner])):
                yield statement.test
        elif isinstance(statement, ir.Return) and statement.value is not None:
            yield from (
                part.operands[0]
                for part in ir.walk(statement.value)
                if isinstance(part, ir.Op) and part.op == "if"
            )


def asks_as_tensor(function: ir.Function, path: str | None) -> bool:
    """Whether a function asks of a place what no number has, `loss.backward()`, `loss.item()`, and never what it is."""
    parts = [part for statement in ir.statements(function.body) for part in ir.own_parts(statement)]
    asked = any(isinstance(part, ir.Attr) and part.base.path == path for part in parts)
    return (
        path is not None
        and asked
        and not any(
            isinstance(part, ir.Call)
            and part.method in ("isinstance", "is_tensor", "hasattr", "type")
            and any(arg.path == path for arg in part.args)
            for part in parts
        )
    )


def _is_number(expr: ir.Expr | None) -> bool:
    return isinstance(expr, ir.Const) and isinstance(expr.value, (int, float))


def innermost(expr: ir.Expr) -> ir.Expr:
    """`out` of `out[0].detach()`."""
    while True:
        if isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr):
            expr = expr.func.base
        elif isinstance(expr, (ir.Sub, ir.Attr)):
            expr = expr.base
        else:
            return expr


def origins(function: ir.Function, name: ir.Expr) -> list[ir.Expr]:
    """What a name is bound to, and what that was made of by methods and fields, three names back."""
    found: list[ir.Expr] = []
    names: set[str | None] = {name.path}
    seen: set[str | None] = {None}
    for _ in range(3):
        names -= seen
        if not names:
            break
        values = [
            statement.value
            for statement in ir.statements(function.body)
            if isinstance(statement, ir.Assign) and statement.value is not None
            if any(target.path in names for target in statement.targets)
        ]
        seen |= names
        names = {innermost(value).path for value in values}
        found += values
    return found


def compares(expr: ir.Expr) -> bool:
    """`out - x`, `mse_loss(out, x)`: two things are set against each other."""
    return any(
        (isinstance(part, ir.Op) and part.op == "-") or (isinstance(part, ir.Call) and "loss" in part.method)
        for part in ir.walk(expr)
    )


def averages(expr: ir.Expr) -> bool:
    """`x.mean(1)`: of differences, one number for each sample; of hidden states it would be a vector."""
    return any(isinstance(part, ir.Call) and part.method == "mean" for part in ir.walk(expr))


def is_region(index: ir.Expr) -> bool:
    """`x[:, 0]`, `x[..., :3]`, `x[mask, :]`: only tensors and arrays are indexed so."""
    return isinstance(index, ir.Seq) and index.kind != "list"


def is_position(index: ir.Expr) -> bool:
    """`x[0]`, `x[:, 1]`, `x[:n]`, `x[None]`: no index that could be a tensor of another device."""
    if isinstance(index, ir.Seq):
        return all(is_position(item) for item in index.items)
    return isinstance(index, (ir.Const, ir.Slice)) or is_plain(index)


def picks_column(index: ir.Expr) -> bool:
    return isinstance(index, ir.Seq) and len(index.items) == 2 and number(index.items[1]) is not None


def is_normalised(expr: ir.Expr) -> bool:
    """Scores that a softmax made: a column of them is one number for each sample."""
    return any(
        isinstance(part, ir.Call) and part.method in ("softmax", "sigmoid", "log_softmax", "logsigmoid")
        for part in ir.walk(expr)
    )


def number(expr: ir.Expr) -> int | None:
    return expr.value if isinstance(expr, ir.Const) and isinstance(expr.value, int) else None


def is_vocabulary(width: ir.Expr) -> bool:
    """Whether so many scores in a row are one for each word of a vocabulary: by their number, or by what it is called."""
    named = (part.path for part in ir.walk(width) if isinstance(part, (ir.Name, ir.Attr)))
    return (number(width) or 0) >= LEAST_VOCABULARY or any(
        NAMES_OF_VOCABULARIES.search(path or "") for path in named
    )


def goes_backward(block: list[ir.Stmt]) -> bool:
    """Whether something in the block is known to run a backward."""
    return any(runs_backward(call.method) for _, call in ir.calls(block))


def deletes(statement: ir.Stmt, name: str) -> bool:
    """Whether it is `del name`, also of several."""
    return isinstance(statement, ir.Delete) and any(part.path == name for part in ir.own_parts(statement))


def is_plain(expr: ir.Expr) -> bool:
    """A number or a size for all that can be seen, or an index of them: no tensor of another device."""
    if isinstance(expr, ir.Const) or number(expr) is not None:
        return True
    if isinstance(expr, ir.Call):
        return expr.method in ("len", "size", "int", "float", "numel", "dim", "max", "min", "round")
    if isinstance(expr, (ir.Attr, ir.Sub)):
        base = expr.base if isinstance(expr, ir.Sub) else expr
        return isinstance(base, ir.Attr) and base.attr in HOST_ATTRS
    if isinstance(expr, (ir.Op, ir.Seq)):
        return all(is_plain(part) for part in expr.children())
    return False


def only_of(expr: ir.Expr, names: set[str]) -> bool:
    """Whether an expression is made of nothing but the same names: `x / x.norm()`."""
    found = {part.id for part in ir.walk(expr) if isinstance(part, ir.Name)}
    return bool(found) and found <= names


def asks_for_tensor(call: ir.Call) -> bool:
    return any(
        (part.attr if isinstance(part, ir.Attr) else part.path or "").endswith("Tensor")
        for arg in call.args[1:]
        for part in ir.walk(arg)
        if isinstance(part, (ir.Attr, ir.Name))
    )


# The orders and the other links of comparisons, of which `ir.Op` has only the commonest.
LINKS: Final[Mapping[type[ast.cmpop], str]] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


def unwrapped(value: ir.Expr) -> ir.Expr:
    """`net` of `net.to(device).eval()` and of `nn.DataParallel(net)`."""
    while isinstance(value, ir.Call):
        if value.method in GIVES_ITSELF and isinstance(value.func, ir.Attr):
            value = value.func.base
        elif value.method in WRAPS and value.args:
            value = value.args[0]
        else:
            break
    return value


NUMBER_TYPES = frozenset({"float", "int", "Number", "str", "ndarray"})


def asked_for_number(test: ir.Op) -> str | None:
    """`x` of `type(x) != float`, and of its like; None for any other test."""
    if test.op not in ("is", "==", "is not", "!=") or len(test.operands) != 2:
        return None
    left, right = test.operands
    if isinstance(left, ir.Call) and left.func.path == "type" and len(left.args) == 1:
        return left.args[0].path if right.path in NUMBER_TYPES else None
    return None


def conjuncts(test: ir.Expr) -> list[ir.Expr]:
    """What all has to hold for a test to hold: the operands of `and`."""
    if isinstance(test, ir.Op) and test.op == "and":
        return [part for operand in test.operands for part in conjuncts(operand)]
    return [test]


def asked_for_eval_mode(test: ir.Expr) -> ir.Expr | None:
    """`net` of `not net.training`, `net.training is False` and `net.training == False`; None for any other test."""
    if not isinstance(test, ir.Op):
        return None
    asked = test.operands[0]
    if test.op in ("is", "=="):
        value = test.operands[1]
        if not (isinstance(value, ir.Const) and value.value is False):
            return None
    elif test.op in ("is not", "!="):
        value = test.operands[1]
        if not (isinstance(value, ir.Const) and value.value is True):
            return None
    elif test.op != "not":
        return None
    return asked.base if isinstance(asked, ir.Attr) and asked.attr == "training" else None
