"""Slots that are emptied or filled again in turn: a ring holds no more than it has places."""

from __future__ import annotations

from gpulint.analysis import ir


def frees_slots(function: ir.Function, path: str) -> bool:
    """Whether the class sets slots of its attribute to None, `self.pending[i] = None`, or the function fills them in turn,
    `self.pending[n % size] = x`."""
    owner = path.partition("[")[0]
    if function.cls is None or "." not in owner:
        return False
    for method in function.cls.methods.values():
        for statement in ir.statements(method.body):
            if isinstance(statement, ir.Assign):
                for target in statement.targets:
                    if isinstance(target, ir.Sub) and target.base.path == owner:
                        if isinstance(statement.value, ir.Const) and statement.value.value is None:
                            return True
                        if method is function and isinstance(target.index, ir.Op) and target.index.op == "%":
                            return True
    return False
