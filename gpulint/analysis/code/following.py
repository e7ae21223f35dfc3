"""What runs right after a statement, and whether it runs at all: read off the blocks it stands in."""

from __future__ import annotations

from gpulint.analysis.code import ir


def ends_at_once(loop: ir.For | ir.While) -> bool:
    """Whether the body of a loop ends by leaving it, under no condition, and nothing in it begins the next round."""
    last = loop.body[-1] if loop.body else None
    leaves = isinstance(last, ir.Return) or (isinstance(last, ir.Jump) and last.kind in ("break", "raise"))
    return leaves and not any(
        isinstance(statement, ir.Jump) and statement.kind == "continue"
        for statement in ir.statements(loop.body)
    )


def main_blocks(module: ir.Module) -> list[ir.Stmt]:
    """What a file runs only where it is itself the program: the statements under its `if __name__ == "__main__":`."""
    return [
        inner
        for guard in module.body.body
        if isinstance(guard, ir.If)
        and any(isinstance(part, ir.Name) and part.id == "__name__" for part in ir.walk(guard.test))
        for inner in guard.body
    ]


def is_switched_off(block: list[ir.Stmt], wanted: ir.Stmt) -> bool:
    """Whether a statement stands under `if 0 > 0:` or `if False:`: somebody has switched it off by hand."""
    for statement in block:
        off = isinstance(statement, ir.If) and _is_never(statement.test)
        for number, inner in enumerate(statement.blocks()):
            if (off and number == 0 and wanted in ir.statements(inner)) or is_switched_off(inner, wanted):
                return True
    return False


def _is_never(test: ir.Expr) -> bool:
    if isinstance(test, ir.Op) and test.op == "cmp":
        return all(isinstance(operand, ir.Const) for operand in test.operands)
    return isinstance(test, ir.Const) and not test.value


def passed_before(block: list[ir.Stmt], wanted: ir.Stmt) -> list[ir.Stmt]:
    """The statements that control goes through before it gets to one of a block: those before it in each block around it."""
    for position, statement in enumerate(block):
        if statement is wanted:
            return block[:position]
        for inner in statement.blocks():
            if any(one is wanted for one in ir.statements(inner)):
                return [*block[:position], *passed_before(inner, wanted)]
    return []


def conditions(block: list[ir.Stmt], wanted: ir.Stmt) -> tuple[tuple[ir.Expr, bool], ...]:
    """The tests on the way to a statement of a block, each with what it has to come to: of the branches around it, and of
    those before it that leave the function or the round. Outermost first."""
    return _conditions(block, wanted) or ()


def _conditions(block: list[ir.Stmt], wanted: ir.Stmt) -> tuple[tuple[ir.Expr, bool], ...] | None:
    passed: list[tuple[ir.Expr, bool]] = []
    for statement in block:
        if statement is wanted:
            return tuple(passed)
        for number, inner in enumerate(statement.blocks()):
            found = _conditions(inner, wanted)
            if found is not None:
                here = ((statement.test, number == 0),) if isinstance(statement, ir.If) else ()
                return (*passed, *here, *found)
        if isinstance(statement, ir.If):
            passed += [
                (statement.test, not holds)
                for holds, branch in ((True, statement.body), (False, statement.orelse))
                if branch and isinstance(branch[-1], (ir.Return, ir.Jump))
            ]
    return None
