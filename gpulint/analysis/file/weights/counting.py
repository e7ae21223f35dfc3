"""Names that only ever stand where a number, a size or a word does: what they stand for is no network and no tensor."""

from __future__ import annotations

from gpulint.analysis.code import ir
from gpulint.analysis.code.loaded import chain_of, parents_of

# Annotations of what is no module and no tensor.
_NUMBERS = frozenset(
    "int float bool str bytes Optional Union List Tuple Sequence Iterable Dict Set list tuple dict set Literal None device "
    "dtype Size ndarray Path Number typing torch np numpy".split()
)
# Where only a number, a size or a word can stand: the arguments of these calls, and keywords of any.
_COUNTING = frozenset(
    "range int float bool str len print isinstance format min max round abs arange zeros ones empty full linspace eye rand "
    "randn view reshape expand repeat permute transpose size unsqueeze squeeze flatten unfold hann_window hamming_window "
    "kaiser_window blackman_window pow split chunk roll randint join".split()
)
_WEIGHING = frozenset({"weight", "bias", "input", "running_mean", "running_var", "other", "window", None})
TESTS = frozenset("cmp not and or if == != is in".split()) | {"is not", "not in"}
INTEGERS = frozenset({"//", "%", "<<", ">>", "&", "|", "^"})


def stands_for_number(function: ir.Function, attributes: set[str], name: str) -> bool:
    places = attributes | {name}
    for statement in ir.statements(function.body):
        parents: dict[int, ir.Expr] | None = None
        bound = statement.targets if isinstance(statement, ir.Assign) else ()
        for expr in ir.own_parts(statement):
            if expr.path not in places or expr in bound:
                continue
            parents = parents_of(statement) if parents is None else parents
            chain = chain_of(expr, parents)
            if not _is_counting(expr, chain, statement, attributes):
                return False
    return True


def _is_counting(expr: ir.Expr, chain: tuple[ir.Expr, ...], statement: ir.Stmt, attributes: set[str]) -> bool:
    """Whether an expression stands in a test, an index, a size, or is stored under its own name."""
    current = expr
    for around in chain:
        if isinstance(around, ir.Op) and (around.op in TESTS or around.op in INTEGERS):
            return around.op not in ("and", "or", "if") or _is_tested(around, current, statement)
        if isinstance(around, (ir.Slice, ir.Text)) or (
            isinstance(around, ir.Sub) and around.index is current
        ):
            return True
        if isinstance(around, ir.Call):
            names = {name for name, value in around.keywords if value is current}
            return around.func is not current and (
                around.method in _COUNTING or (bool(names) and not names & _WEIGHING)
            )
        if not isinstance(around, (ir.Op, ir.Seq)):
            return False
        current = around
    if isinstance(statement, ir.Assign):
        return current is expr and all(target.path in attributes for target in statement.targets)
    return isinstance(statement, (ir.If, ir.While, ir.Check))


def _is_tested(around: ir.Op, part: ir.Expr, statement: ir.Stmt) -> bool:
    if around.op == "if":
        return around.operands[0] is part
    return isinstance(statement, (ir.If, ir.While, ir.Check))


def is_number(param: ir.Param) -> bool:
    """Whether a parameter is a number, a text or some of them, by its annotation or by its default."""
    if param.annotation is not None:
        return all(_names_number(part) for part in ir.walk(param.annotation))
    default = param.default
    return isinstance(default, ir.Const) and isinstance(default.value, (int, float, str))


def _names_number(part: ir.Expr) -> bool:
    if isinstance(part, ir.Name):
        return part.id in _NUMBERS
    if isinstance(part, ir.Attr):
        return part.attr in _NUMBERS
    return True
