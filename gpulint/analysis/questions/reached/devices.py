"""Places that hold a `torch.device` wherever they are asked for: one equals no text, so `if device == "cuda":` never holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import pairs, targets
from gpulint.analysis.file.lookup import qualified

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_DEPTH = 2  # `device = torch.device("cuda")`, then `self.device = device`


class Devices:
    """The devices of one file."""

    def __init__(self, file: FileAnalysis) -> None:
        self._file = file

    def holds(self, function: ir.Function, path: str, test: ir.Expr, depth: int = _DEPTH) -> bool:
        """Whether a place holds a device where a function asks for it in a test."""
        head, _, attr = path.partition(".")
        own = function.params[0].name if function.cls is not None and function.params else ""
        if attr and head == own:
            return "." not in attr and self._holds_attribute(function, attr, depth)
        if "[" in path:
            return False
        stored = self._stored(function, path)
        if stored:
            before = any(
                statement.row < test.row
                for statement in function.body
                if isinstance(statement, ir.Assign) and any(one.path == path for one in targets(statement))
            )
            return before and all(self._makes(function, value, depth) for value in stored)
        body = self._file.module.body
        bound = head in self._file.evidence[function].assigned or any(p.name == head for p in function.params)
        if attr or bound or function is body or self._is_global(path):
            return False
        stored = self._stored(body, path)
        return bool(stored) and all(self._makes(body, value, depth) for value in stored)

    def _holds_attribute(self, function: ir.Function, attr: str, depth: int) -> bool:
        """Whether all that a class stores as `self.attr` is a device, or one of its methods asks for its `type`, which no text
        has."""
        info = self._file.class_of(function)
        methods = [method for one in info.lineage() for method in one.cls.methods.values()] if info else []
        stored: list[bool] = []
        asked = plain = False
        for method in methods:
            path = f"{method.params[0].name}.{attr}" if method.params else ""
            values = self._stored(method, path)
            stored += [self._makes(method, value, depth) for value in values]
            plain |= any(isinstance(value, ir.Const) for value in values)
            for statement in ir.statements(method.body):
                parts = ir.own_parts(statement)
                plain |= any(isinstance(part, ir.Call) and _asks_what(part, path) for part in parts)
                asked |= _is_typed(parts, path)
        return (bool(stored) and all(stored)) or (asked and not plain)

    def _makes(self, function: ir.Function, value: ir.Expr | None, depth: int) -> bool:
        """Whether an expression makes a device, or reads a name that holds one."""
        if isinstance(value, ir.Op) and value.op == "if":
            return all(self._makes(function, one, depth) for one in value.operands[1:])
        if isinstance(value, ir.Name) and depth:
            return self.holds(function, value.id, value, depth - 1)
        return (
            isinstance(value, ir.Call)
            and qualified(function.home, function, value.func.path) == "torch.device"
        )

    def _is_global(self, name: str) -> bool:
        return any(name in evidence.declared for evidence in self._file.evidence.values())

    def _stored(self, function: ir.Function, path: str) -> list[ir.Expr | None]:
        """What a function stores in a place; None among it for what is not seen to be a value."""
        return [
            next((value for place, value in pairs(statement) if place.path == path), None)
            if isinstance(statement, ir.Assign)
            else None
            for statement in ir.statements(function.body)
            if any(target.path == path for target in targets(statement))
        ]


def _asks_what(call: ir.Call, path: str) -> bool:
    """`isinstance(self.device, str)`: it may be a text as well."""
    return call.method in ("isinstance", "type", "hasattr", "getattr") and any(
        arg.path == path for arg in call.args[:1]
    )


def _is_typed(parts: tuple[ir.Expr, ...], path: str) -> bool:
    """Whether a statement reads `self.device.type`, and not after it has compared it to a text."""
    reads = any(
        isinstance(part, ir.Attr) and part.attr == "type" and part.base.path == path for part in parts
    )
    return reads and not any(
        isinstance(part, ir.Op) and any(operand.path == path for operand in part.operands) for part in parts
    )
