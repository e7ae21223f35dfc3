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


def with_argument(
    call: cst.CSTNode, keyword: str, value: str | cst.BaseExpression, position: int | None = None
) -> cst.Call:
    """The call with ``keyword=value``, in the layout that its arguments have; an argument of that name, or positional at `position`,
    gets the value instead.

    Raises TypeError for a node that is no call.
    """
    if not isinstance(call, cst.Call):
        raise TypeError(f"A {type(call).__name__} is no call that has arguments.")
    new = cst.parse_expression(value) if isinstance(value, str) else value
    args = list(call.args)
    for number, arg in enumerate(args):
        named = arg.keyword is not None and arg.keyword.value == keyword
        if named or (arg.keyword is None and number == position):
            args[number] = arg.with_changes(value=new)
            return call.with_changes(args=args)
    none = cst.SimpleWhitespace("")
    added = cst.Arg(new, cst.Name(keyword), cst.AssignEqual(none, none))
    if args:
        last = args[-1]
        ended = isinstance(last.comma, cst.Comma)
        after = (
            last.comma.whitespace_after if isinstance(last.comma, cst.Comma) else last.whitespace_after_arg
        )
        between, closing = around_last(call.whitespace_before_args, after)
        comma = cst.Comma(whitespace_after=closing) if ended else cst.MaybeSentinel.DEFAULT
        added = added.with_changes(comma=comma, whitespace_after_arg=none if ended else closing)
        args[-1] = last.with_changes(comma=cst.Comma(whitespace_after=between), whitespace_after_arg=none)
    return call.with_changes(args=[*args, added])


_Blank = cst.BaseParenthesizableWhitespace


def around_last(opening: _Blank, closing: _Blank) -> tuple[_Blank, _Blank]:
    """What stands before a new last entry of a bracket, and after it. A comment behind the entry that was the last one stays there;
    entries on lines of their own stay so."""
    if not isinstance(opening, cst.ParenthesizedWhitespace):
        return cst.SimpleWhitespace(" "), closing
    if not isinstance(closing, cst.ParenthesizedWhitespace):
        return opening.with_changes(first_line=cst.TrailingWhitespace()), closing
    return (
        opening.with_changes(first_line=closing.first_line, empty_lines=closing.empty_lines),
        closing.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=[]),
    )


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
