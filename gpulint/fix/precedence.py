"""When an expression needs parentheses where another one stood."""

from __future__ import annotations

import libcst as cst

_YIELD, _TUPLE, _EXPRESSION, _OR, _AND, _NOT, _COMPARISON, _BIT_OR = range(8)
_BIT_XOR, _BIT_AND, _SHIFT, _SUM, _TERM, _UNARY, _POWER, _AWAIT, _PRIMARY = range(8, 17)

_BINARY: dict[type[cst.CSTNode], int] = {
    cst.BitOr: _BIT_OR,
    cst.BitXor: _BIT_XOR,
    cst.BitAnd: _BIT_AND,
    cst.LeftShift: _SHIFT,
    cst.RightShift: _SHIFT,
    cst.Add: _SUM,
    cst.Subtract: _SUM,
    cst.Multiply: _TERM,
    cst.Divide: _TERM,
    cst.FloorDivide: _TERM,
    cst.Modulo: _TERM,
    cst.MatrixMultiply: _TERM,
    cst.Power: _POWER,
}
_OTHER: dict[type[cst.CSTNode], int] = {
    cst.Yield: _YIELD,
    cst.NamedExpr: _YIELD,
    cst.GeneratorExp: _YIELD,
    cst.StarredElement: _YIELD,
    cst.Tuple: _TUPLE,
    cst.Lambda: _EXPRESSION,
    cst.IfExp: _EXPRESSION,
    cst.Comparison: _COMPARISON,
    cst.Await: _AWAIT,
    cst.Integer: _AWAIT,  # `1.item()` does not parse
}
_TAKES_TUPLE = (cst.Assign, cst.AugAssign, cst.AnnAssign, cst.Expr, cst.Return, cst.Yield, cst.For)


def level(node: cst.BaseExpression) -> int:
    """How tightly an expression binds; more binds tighter."""
    if node.lpar:
        return _PRIMARY
    if isinstance(node, cst.BinaryOperation):
        return _BINARY[type(node.operator)]
    if isinstance(node, cst.BooleanOperation):
        return _OR if isinstance(node.operator, cst.Or) else _AND
    if isinstance(node, cst.UnaryOperation):
        return _NOT if isinstance(node.operator, cst.Not) else _UNARY
    return _OTHER.get(type(node), _PRIMARY)


def needs_parentheses(new: cst.BaseExpression, old: cst.BaseExpression, parent: cst.CSTNode) -> bool:
    """Whether `new` must be put in parentheses to stand where `old` stands in `parent`."""
    if isinstance(new, (cst.Yield, cst.NamedExpr, cst.GeneratorExp)) and not new.lpar:
        if isinstance(old, type(new)) and not old.lpar:
            return False
        return not (isinstance(new, cst.Yield) and isinstance(parent, (cst.Assign, cst.AugAssign, cst.Expr)))
    return level(new) < _required(parent, old)


def _required(parent: cst.CSTNode, child: cst.CSTNode) -> int:
    """The least level that an expression in place of `child` may have without parentheses."""
    if isinstance(parent, cst.BinaryOperation):
        own = _BINARY[type(parent.operator)]
        if isinstance(parent.operator, cst.Power):
            return _AWAIT if child is parent.left else _UNARY
        return own if child is parent.left else own + 1
    if isinstance(parent, cst.BooleanOperation):
        own = level(parent.with_changes(lpar=(), rpar=()))
        return own if child is parent.left else own + 1
    if isinstance(parent, cst.UnaryOperation):
        return _NOT if isinstance(parent.operator, cst.Not) else _UNARY
    if isinstance(parent, (cst.Attribute, cst.Call, cst.Subscript, cst.Await)):
        return _PRIMARY
    if isinstance(parent, (cst.Comparison, cst.ComparisonTarget, cst.StarredElement, cst.StarredDictElement)):
        return _BIT_OR
    if isinstance(parent, cst.Index) and parent.star:
        return _BIT_OR
    if isinstance(parent, cst.IfExp):
        return _EXPRESSION if child is parent.orelse else _OR
    if isinstance(parent, (cst.CompFor, cst.CompIf, cst.FormattedStringExpression)):
        return _OR
    return _TUPLE if isinstance(parent, _TAKES_TUPLE) else _EXPRESSION


def binds_as_primary(node: cst.BaseExpression) -> bool:
    """Whether `.name`, `(…)` or `[…]` can follow the expression as it is."""
    return level(node) == _PRIMARY
