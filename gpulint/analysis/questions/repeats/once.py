"""Code that runs once: for each object that a constructor makes, for the whole script, or where a place is still unset."""

from __future__ import annotations

from gpulint.analysis.code import ir
from gpulint.answers import Answer, Question, left_open, refuted

_CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__"})


def runs_once(function: ir.Function, in_loop: bool) -> tuple[Answer, ...]:
    """What leaves it open whether a line of a function runs more than once; `in_loop`: a loop of the function's runs it."""
    if in_loop:
        return ()
    if function.name == "<module>":
        return (left_open(Question.REPEATS, "the script runs it once"),)
    if function.cls is None or function.name not in _CONSTRUCTORS:
        return ()
    clause = f"the constructor runs it once, and how many `{function.cls.name}` are made is not shown"
    return (left_open(Question.REPEATS, clause, function),)


def fills_once(function: ir.Function, statement: ir.Stmt, slot: str) -> tuple[Answer, ...]:
    """What refutes that a statement sets a place again and again: `if self.norm is None:`, or `if z < 0:` of a `z` that was
    read from there, with `self.norm = …` under it."""
    for one in ir.statements(function.body):
        if not isinstance(one, ir.If) or not any(inner is statement for inner in ir.statements(one.body)):
            continue
        test = _compared(one.test)
        if test is not None and (test.path == slot or slot in _read_by(function, test.path)):
            return (refuted(Question.REPEATS, f"only where `{slot}` has not been set yet", one.test),)
    return ()


def _compared(test: ir.Expr) -> ir.Expr | None:
    """What `x is None`, `x < 0`, `x == -1` ask about: it is compared with a literal, and with nothing else."""
    if not isinstance(test, ir.Op) or test.op not in ("is", "==", "cmp") or len(test.operands) != 2:
        return None
    return test.operands[0] if isinstance(test.operands[1], ir.Const) else None


def _read_by(function: ir.Function, name: str | None) -> set[str]:
    """The places that a name of the function is read from."""
    return {
        part.path
        for statement in ir.statements(function.body)
        if isinstance(statement, ir.Assign) and statement.value is not None
        if any(target.path == name for target in statement.targets)
        for part in ir.walk(statement.value)
        if part.path is not None
    }
