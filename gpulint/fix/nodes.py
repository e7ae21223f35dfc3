"""Constructors of the syntax nodes that rules write into fixes."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from gpulint.fix.precedence import binds_as_primary


def method_chain(expression: cst.CSTNode, methods: Iterable[str]) -> cst.BaseExpression:
    """``method_chain(x, ("detach", "cpu"))`` is ``x.detach().cpu()``; `x` is parenthesised where it must be.

    Raises TypeError for a node that is no expression.
    """
    if not isinstance(expression, cst.BaseExpression):
        raise TypeError(f"A {type(expression).__name__} is no expression that has methods.")
    chain: cst.BaseExpression = expression
    if not binds_as_primary(cst.Module([]).code_for_node(chain)):
        chain = chain.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    for method in methods:
        chain = cst.Call(cst.Attribute(chain, cst.Name(method)))
    return chain


def call_method(expression: cst.CSTNode, method: str) -> cst.BaseExpression:
    """``call_method(x, "item")`` is ``x.item()``."""
    return method_chain(expression, (method,))


def assign(target: str, value: str) -> cst.SimpleStatementLine:
    """The statement ``target = value``, both given as code. Raises ValueError where that does not parse."""
    return statement(f"{target} = {value}")


def delete(names: Iterable[str]) -> cst.SimpleStatementLine:
    """The statement ``del a, b``. Raises ValueError where there is nothing to delete."""
    return statement(f"del {', '.join(names)}")


def no_grad_with(context: str) -> cst.With:
    """The header ``with torch.no_grad():`` for a `Wrap`, from ``torch.no_grad`` or ``torch.no_grad()``."""
    return cst.With([cst.WithItem(_call(context))], cst.IndentedBlock([]))


def no_grad_decorator(context: str) -> cst.Decorator:
    """The decorator ``@torch.no_grad()``, from ``torch.no_grad`` or ``torch.no_grad()``."""
    return cst.Decorator(_call(context))


def with_argument(call: cst.CSTNode, keyword: str, value: str, position: int) -> cst.Call:
    """The call with ``keyword=value``; an argument of that name, or positional at `position`, gets the value instead.

    Raises TypeError for a node that is no call.
    """
    if not isinstance(call, cst.Call):
        raise TypeError(f"A {type(call).__name__} is no call that has arguments.")
    new = cst.parse_expression(value)
    args = list(call.args)
    for number, arg in enumerate(args):
        named = arg.keyword is not None and arg.keyword.value == keyword
        if named or (arg.keyword is None and number == position):
            args[number] = arg.with_changes(value=new)
            return call.with_changes(args=args)
    if args and not isinstance(args[-1].comma, cst.Comma):
        args[-1] = args[-1].with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return call.with_changes(args=[*args, cst.Arg(new, cst.Name(keyword), equal)])


def expression(code: str) -> cst.BaseExpression:
    """The expression given as code. Raises ValueError where that does not parse."""
    try:
        return cst.parse_expression(code)
    except cst.ParserSyntaxError:
        raise ValueError(f"{code!r} is no expression.") from None


def statement(code: str) -> cst.SimpleStatementLine:
    """The simple statement given as code. Raises ValueError where that does not parse."""
    try:
        parsed = cst.parse_statement(code)
    except cst.ParserSyntaxError:
        raise ValueError(f"{code!r} is no statement.") from None
    if not isinstance(parsed, cst.SimpleStatementLine):
        raise ValueError(f"{code!r} is no simple statement.")
    return parsed


def string_like(literal: cst.CSTNode, text: str) -> cst.SimpleString | None:
    """A string with the quotes of `literal` and this text; None where one of the two needs more care than that."""
    if not isinstance(literal, cst.SimpleString) or any(mark in text for mark in "\\\"'\n"):
        return None
    return literal.with_changes(value=f"{literal.prefix}{literal.quote}{text}{literal.quote}")


def _call(context: str) -> cst.BaseExpression:
    return expression(context if context.endswith(")") else f"{context}()")
