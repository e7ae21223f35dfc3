"""The repair of recovery inside an `except`: a flag in the handler, the recovery behind the `try`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.facts import OomHandler
from gpulint.rule import Insert, Repair, Replace

if TYPE_CHECKING:
    import libcst as cst

FLAG = "out_of_memory"


def repair(found: OomHandler) -> Repair | None:
    """Move the handler's body behind the `try` under a flag; None where control or the exception stands in the way."""
    import libcst as cst

    node = found.stmt.node
    handler = found.handler.node
    if not isinstance(node, cst.Try) or not isinstance(handler, cst.ExceptHandler) or not _can_move(found):
        return None
    if not isinstance(handler.body, cst.IndentedBlock):
        return None
    raised = cst.parse_statement(f"{FLAG} = True\n")
    flagged = handler.with_changes(
        body=cst.IndentedBlock(body=[raised], header=handler.body.header, indent=handler.body.indent)
    )
    handlers = [flagged if other is handler else other for other in node.handlers]
    recovery = cst.If(
        test=cst.Name(FLAG), body=cst.IndentedBlock(body=handler.body.body, indent=handler.body.indent)
    )
    changes = (
        Insert(node, _statement(f"{FLAG} = False"), after=False),
        Replace(node, node.with_changes(handlers=handlers, leading_lines=[])),
        Insert(node, recovery),
    )
    why = "code between the handler and the recovery may count on its having run"
    return Repair("unsafe", "recover after the handler, by a flag", changes, why)


def _statement(code: str) -> cst.BaseStatement:
    import libcst as cst

    parsed = cst.parse_statement(code + "\n")
    assert isinstance(parsed, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    return parsed


def _can_move(found: OomHandler) -> bool:
    if found.why == "stored" or len(found.stmt.handlers) != 1 or found.stmt.final or found.stmt.orelse:
        return False
    for statement in ir.statements(found.handler.body):
        if isinstance(statement, (ir.Return, ir.Jump)):
            return False
        for part in ir.own_parts(statement):
            if isinstance(part, ir.Name) and part.id in (found.handler.name, FLAG):
                return False
    return True
