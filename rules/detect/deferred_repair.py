"""The repair of a deferred backward: the backward moves into the loop, to each batch's loss."""

from __future__ import annotations

from gpulint.analysis.code import ir
from gpulint.analysis.file.asking import FileFacts
from gpulint.analysis.file.facts import DeferredBackward
from gpulint.rule import Insert, Remove, Repair, Replace


def repair(facts: FileFacts, found: DeferredBackward) -> Repair | None:
    """`total.backward()` after the loop becomes `loss.backward()` in it, scaled alike; None where more is at stake."""
    import libcst as cst

    hold, backward = found.hold, found.backward
    loss = hold.leaves[0] if len(hold.leaves) == 1 else None
    if (
        loss is None
        or loss.path is None
        or hold.place.how != "add"
        or not isinstance(hold.stmt, ir.AugAssign)
    ):
        return None
    if (
        not isinstance(backward.stmt, ir.ExprStmt)
        or backward.path != hold.place.holder
        or backward.retain_argument
    ):
        return None
    if _zeroes_between(hold, backward.stmt) or _other_uses(hold):
        return None
    scaled = facts.tree.code_for_node(hold.stmt.value.node)
    target = f"({scaled})" if isinstance(hold.stmt.value, ir.Op) else scaled
    code = facts.tree.code_for_node(backward.call.func.base.node)  # type: ignore[attr-defined]
    call = facts.tree.code_for_node(backward.call.node).replace(code, target, 1)
    statement = cst.parse_statement(call)
    detached = cst.parse_expression(f"{loss.path}.detach()")
    changes = (
        Insert(hold.stmt.line, statement, after=False),
        Replace(loss.node, detached),
        Remove(backward.stmt.node),
    )
    why = "gradients are then there even where code between the loop and the backward would have stopped it"
    return Repair("unsafe", "backward for each batch, in the loop", changes, why)


def _zeroes_between(hold: object, backward: ir.Stmt) -> bool:
    """Whether gradients are zeroed between the loop and its backward: they would be lost with the backward moved."""
    from gpulint.analysis.file.facts import Hold

    assert isinstance(hold, Hold)
    loop = hold.rounds.loops[-1].stmt
    seen = False
    for statement in ir.statements(hold.function.body):
        if statement is loop:
            seen = True
        elif statement is backward:
            return False
        elif seen and any(call.method == "zero_grad" for _, call in ir.calls([statement])):
            return True
    return True


def _other_uses(hold: object) -> bool:
    from gpulint.analysis.file.facts import Hold

    assert isinstance(hold, Hold)
    loads = 0
    for statement in ir.statements(hold.function.body):
        if statement is hold.stmt:
            continue
        for root in statement.expressions():
            loads += sum(
                1 for part in ir.walk(root) if isinstance(part, ir.Name) and part.id == hold.place.holder
            )
    return loads > 2  # its start and its backward
