"""libcst's nodes for the nodes of Python's own tree that the lowered form came from.

Both trees have the same grammar, so they are walked side by side: the third argument of a call is the third argument in
the other tree. No position is compared, and nothing depends on tabs, encodings, line ends, or on where Python says that
the pieces of an f-string stand. Where the two cannot be matched, what is beneath has its statement's node.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

import libcst as cst

Pair = tuple[Any, Any]  # a node of `ast`, the same of libcst


def attach(mine: Any, theirs: Any, line: Any = None) -> None:
    """Note the libcst node of one of Python's; of a small statement also the line that it stands in."""
    mine.node_of_libcst = theirs
    if line is not None:
        mine.line_of_libcst = line


def attach_all(tree: ast.Module, module: cst.Module) -> None:
    """Give every statement and expression of `tree` the node of `module`, parsed from the same text."""
    attach(tree, module)
    stack = list(_block(tree.body, module.body))
    while stack:
        mine, theirs, line, statement = stack.pop()
        statement = theirs if isinstance(mine, ast.stmt) else statement
        names = _KINDS.get(mine.__class__)
        if names is not None and theirs.__class__.__name__ not in names:
            _give_up(mine, statement)
            continue
        attach(mine, theirs, line)
        beneath = _BENEATH.get(mine.__class__)
        if beneath is None:
            continue
        try:
            found = list(beneath(mine, theirs))
        except (AttributeError, IndexError, ValueError, TypeError):  # another shape than the one expected
            for child in ast.iter_child_nodes(mine):
                _give_up(child, statement)
            continue
        for one in found:
            stack.append(one if len(one) == 4 else (*one, None, statement))


def detach_all(tree: ast.Module) -> None:
    """Take from all of `tree` what it was given."""
    for one in ast.walk(tree):
        one.__dict__.pop("node_of_libcst", None)
        one.__dict__.pop("line_of_libcst", None)


def _give_up(mine: ast.AST, statement: Any) -> None:
    for part in ast.walk(mine):
        attach(part, statement)


# --- statements ----------------------------------------------------------------------------------------------------


def _block(mine: Sequence[ast.stmt], theirs: Sequence[Any], line: Any = None) -> Iterator[Any]:
    """The statements of a block, those on one line one by one, each with its line."""
    found: list[tuple[Any, Any]] = []
    for node in theirs:
        if isinstance(node, cst.SimpleStatementLine):
            found += [(small, node) for small in node.body]
        else:
            found.append((node, line))
    for statement, (node, around) in zip(mine, found, strict=True):
        yield statement, node, around, node


def _suite(mine: Sequence[ast.stmt], theirs: Any) -> Iterator[Any]:
    """The statements of an indented block, or of the rest of a line."""
    if theirs is None:
        return
    if isinstance(theirs, cst.If):  # elif
        (inner,) = mine
        yield inner, theirs, None, theirs
        return
    if isinstance(theirs, (cst.Else, cst.Finally)):
        theirs = theirs.body
    yield from _block(mine, theirs.body, theirs if isinstance(theirs, cst.SimpleStatementSuite) else None)


def _with(mine: ast.With, theirs: cst.With) -> Iterator[Any]:
    for item, other in zip(mine.items, theirs.items, strict=True):
        yield item.context_expr, other.item
        if item.optional_vars is not None:
            yield item.optional_vars, _of(other.asname).name
    yield from _suite(mine.body, theirs.body)


def _match(mine: ast.Match, theirs: cst.Match) -> Iterator[Any]:
    yield mine.subject, theirs.subject
    for case, other in zip(mine.cases, theirs.cases, strict=True):
        if case.guard is not None:
            yield case.guard, other.guard
        yield from _suite(case.body, other.body)


def _function(mine: ast.FunctionDef, theirs: cst.FunctionDef) -> Iterator[Any]:
    yield from _DECORATED(mine, theirs)
    yield from _parameters(mine.args, theirs.params)
    if mine.returns is not None:
        yield mine.returns, _of(theirs.returns).annotation
    yield from _suite(mine.body, theirs.body)


def _class(mine: ast.ClassDef, theirs: cst.ClassDef) -> Iterator[Any]:
    yield from _DECORATED(mine, theirs)
    yield from _arguments(mine.bases, mine.keywords, (*theirs.bases, *theirs.keywords))
    yield from _suite(mine.body, theirs.body)


def _delete(mine: ast.Delete, theirs: cst.Del) -> Iterator[Pair]:
    target = theirs.target
    if isinstance(target, cst.Tuple) and not target.lpar:
        yield from _elements(mine.targets, target.elements)
    else:
        (only,) = mine.targets
        yield only, target


def _parameters(mine: ast.arguments, theirs: cst.Parameters) -> Iterator[Pair]:
    positional = zip((*mine.posonlyargs, *mine.args), (*theirs.posonly_params, *theirs.params), strict=True)
    named = zip(mine.kwonlyargs, theirs.kwonly_params, strict=True)
    pairs: list[Pair] = [*positional, *named, (mine.vararg, theirs.star_arg), (mine.kwarg, theirs.star_kwarg)]
    for param, other in pairs:
        if param is not None and param.annotation is not None:
            yield param.annotation, other.annotation.annotation
    defaults = [param for param in (*theirs.posonly_params, *theirs.params) if param.default is not None]
    for default, other in zip(mine.defaults, defaults, strict=True):
        yield default, other.default
    for value, other in zip(mine.kw_defaults, theirs.kwonly_params, strict=True):
        if value is not None:
            yield value, other.default


# --- expressions ---------------------------------------------------------------------------------------------------


def _of(node: Any) -> Any:
    """A node that must be there."""
    if node is None:
        raise ValueError
    return node


def _call(mine: ast.Call, theirs: cst.Call) -> Iterator[Pair]:
    yield mine.func, theirs.func
    yield from _arguments(mine.args, mine.keywords, theirs.args)


def _arguments(args: Sequence[Any], keywords: Sequence[Any], theirs: Iterable[cst.Arg]) -> Iterator[Pair]:
    """Arguments by position and by keyword, which libcst keeps in the order of the text."""
    positional: list[cst.Arg] = []
    named: list[cst.Arg] = []
    for arg in theirs:
        (named if arg.keyword is not None or arg.star == "**" else positional).append(arg)
    for mine, other in zip(args, positional, strict=True):
        yield mine, other.value
        if isinstance(mine, ast.Starred):
            yield mine.value, other.value
    for mine, other in zip(keywords, named, strict=True):
        yield mine.value, other.value


def _elements(mine: Sequence[Any], theirs: Sequence[Any]) -> Iterator[Pair]:
    for element, other in zip(mine, theirs, strict=True):
        if isinstance(element, ast.Starred):
            yield element, other
            yield element.value, other.value
        else:
            yield element, other.value


def _display(mine: Any, theirs: Any) -> Iterator[Pair]:
    yield from _elements(mine.elts, theirs.elements)


def _dict(mine: ast.Dict, theirs: cst.Dict) -> Iterator[Pair]:
    for key, value, other in zip(mine.keys, mine.values, theirs.elements, strict=True):
        if key is not None:
            yield key, _of(other).key
        yield value, other.value


def _subscript(mine: ast.Subscript, theirs: cst.Subscript) -> Iterator[Pair]:
    yield mine.value, theirs.value
    first = theirs.slice[0]
    several = len(theirs.slice) > 1 or isinstance(first.comma, cst.Comma)
    if not several and not (isinstance(first.slice, cst.Index) and first.slice.star):
        yield from _index(mine.slice, first.slice)
        return
    whole: Any = mine.slice
    attach(whole, theirs)
    for element, other in zip(whole.elts, theirs.slice, strict=True):
        yield from _index(element, other.slice)


def _index(mine: ast.expr, theirs: cst.BaseSlice) -> Iterator[Pair]:
    if isinstance(theirs, cst.Slice):
        yield mine, theirs
    elif isinstance(mine, ast.Starred):
        yield mine, theirs
        yield mine.value, _of(theirs).value
    else:
        yield mine, _of(theirs).value


def _boolean(mine: ast.BoolOp, theirs: cst.BooleanOperation) -> Iterator[Pair]:
    # `a and b and c` is one node to Python where the lowering has not been: libcst's leans left.
    node: Any = theirs
    for value in reversed(mine.values[1:]):
        yield value, node.right
        node = node.left
    yield mine.values[0], node


def _comprehension(mine: Any, theirs: Any) -> Iterator[Pair]:
    if isinstance(mine, ast.DictComp):
        yield mine.key, theirs.key
        yield mine.value, theirs.value
    else:
        yield mine.elt, theirs.elt
    clause = theirs.for_in
    for generator in mine.generators:
        yield generator.target, clause.target
        yield generator.iter, clause.iter
        for test, other in zip(generator.ifs, clause.ifs, strict=True):
            yield test, other.test
        clause = clause.inner_for_in


def _lambda(mine: ast.Lambda, theirs: cst.Lambda) -> Iterator[Pair]:
    yield from _parameters(mine.args, theirs.params)
    yield mine.body, theirs.body


def _formatted(values: Sequence[ast.expr], pieces: Iterable[Any]) -> Iterator[Pair]:
    """What an f-string puts in, and what its format puts in."""
    put_in = [value for value in values if isinstance(value, ast.FormattedValue)]
    others = [piece for piece in pieces if isinstance(piece, cst.FormattedStringExpression)]
    for value, other in zip(put_in, others, strict=True):
        yield value.value, other.expression
        if isinstance(value.format_spec, ast.JoinedStr) and other.format_spec is not None:
            yield from _formatted(value.format_spec.values, other.format_spec)


def _pieces(node: Any) -> Iterator[Any]:
    """The pieces of f-strings side by side."""
    while isinstance(node, cst.ConcatenatedString):
        yield from getattr(node.left, "parts", ())
        node = node.right
    yield from getattr(node, "parts", ())


def _parts(text: str) -> Callable[[Any, Any], Iterator[Any]]:
    """What is beneath a node, by the names of its fields, `mine`, `mine=theirs`, or for items one by one `mine=theirs*theirs_of_item`.
    Another list is a suite, and what Python's node lacks is passed over."""
    names = []
    for one in text.split():
        name, _, other = one.partition("=")
        of, each, item = (other or name).partition("*")
        names.append((name, attrgetter(of), each, attrgetter(item) if item else None))

    def beneath(mine: Any, theirs: Any) -> Iterator[Any]:
        for name, of, each, item in names:
            part = getattr(mine, name)
            if each:
                pairs = zip(part, of(theirs), strict=True)
                yield from ((one, item(other) if item else other) for one, other in pairs)
            elif isinstance(part, list):
                yield from _suite(part, of(theirs))
            elif part is not None:
                yield part, of(theirs)

    return beneath


_DECORATED = _parts("decorator_list=decorators*decorator")


_CONSTANTS = "Name Integer Float Imaginary SimpleString ConcatenatedString Ellipsis"
# What each node of Python's is to libcst, anything else means that the trees differ; and what is beneath it.
_SAME: dict[type, tuple[str, str | Callable[[Any, Any], Iterator[Any]]]] = {
    ast.Name: ("Name", ""),
    ast.Constant: (_CONSTANTS, ""),
    ast.JoinedStr: ("FormattedString ConcatenatedString", lambda m, t: _formatted(m.values, _pieces(t))),
    ast.Attribute: ("Attribute", "value"),
    ast.Call: ("Call", _call),
    ast.Subscript: ("Subscript", _subscript),
    ast.Slice: ("Slice", "lower upper step"),
    ast.BinOp: ("BinaryOperation", "left right"),
    ast.BoolOp: ("BooleanOperation", _boolean),
    ast.UnaryOp: ("UnaryOperation", "operand=expression"),
    ast.Compare: ("Comparison", "left comparators=comparisons*comparator"),
    ast.IfExp: ("IfExp", "test body orelse"),
    ast.List: ("List", _display),
    ast.Tuple: ("Tuple", _display),
    ast.Set: ("Set", _display),
    ast.Dict: ("Dict", _dict),
    ast.ListComp: ("ListComp", _comprehension),
    ast.SetComp: ("SetComp", _comprehension),
    ast.DictComp: ("DictComp", _comprehension),
    ast.GeneratorExp: ("GeneratorExp", _comprehension),
    ast.Lambda: ("Lambda", _lambda),
    ast.Await: ("Await", "value=expression"),
    ast.Yield: ("Yield", "value"),
    ast.YieldFrom: ("Yield", "value=value.item"),
    ast.NamedExpr: ("NamedExpr", "target value"),
    ast.Expr: ("Expr", "value"),
    ast.Assign: ("Assign", "targets=targets*target value"),
    ast.AnnAssign: ("AnnAssign", "target annotation=annotation.annotation value"),
    ast.AugAssign: ("AugAssign", "target value"),
    ast.Return: ("Return", "value"),
    ast.Raise: ("Raise", "exc cause=cause.item"),
    ast.Delete: ("Del", _delete),
    ast.Assert: ("Assert", "test msg"),
    ast.If: ("If", "test body orelse"),
    ast.For: ("For", "target iter body orelse"),
    ast.AsyncFor: ("For", "target iter body orelse"),
    ast.While: ("While", "test body orelse"),
    ast.With: ("With", _with),
    ast.AsyncWith: ("With", _with),
    ast.Try: ("Try TryStar", "body handlers=handlers* orelse finalbody"),
    ast.Match: ("Match", _match),
    ast.ExceptHandler: ("ExceptHandler ExceptStarHandler", "type body"),
    ast.FunctionDef: ("FunctionDef", _function),
    ast.AsyncFunctionDef: ("FunctionDef", _function),
    ast.ClassDef: ("ClassDef", _class),
}
if hasattr(ast, "TryStar"):  # Python 3.11
    _SAME[ast.TryStar] = _SAME[ast.Try]
_KINDS = {kind: frozenset(names.split()) for kind, (names, _) in _SAME.items()}
_BENEATH = {kind: _parts(how) if isinstance(how, str) else how for kind, (_, how) in _SAME.items()}
