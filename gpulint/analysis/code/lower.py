"""Python's own syntax tree → functions, classes, loops and statements, in one pass.

Each piece keeps the node it was made from, its `origin`. Positions and repairs need the tree that keeps the text, which
is libcst's: `gpulint.lint.attaching` finds its nodes for the origins, in files that have something to say.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from gpulint.analysis.code import ir

_BINARY: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitOr: "|", ast.BitAnd: "&", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip

_COMPARE: dict[type, str] = {
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip

_COMPREHENSIONS: dict[type, str] = {
    ast.ListComp: "list",
    ast.SetComp: "set",
    ast.DictComp: "dict",
    ast.GeneratorExp: "generator",
}


def lower(module: ast.Module) -> ir.Module:
    """Lower a tree of `ast.parse`. Raises RecursionError where it is nested deeper than Python's stack allows."""
    return _Lowering(module).run()


class _Lowering:
    def __init__(self, module: ast.Module) -> None:
        self.statements = module.body
        self.function = ir.Function(module, "<module>", "<module>", (), [])
        self.module = ir.Module(self.function)
        self.cls: ir.Class | None = None
        self.prefix = ""

    def run(self) -> ir.Module:
        self.module.functions.append(self.function)
        self.function.body = self.block(self.statements)
        return self.module

    # --- expressions -------------------------------------------------------------------------------------------

    def expr(self, node: Any) -> ir.Expr:
        handler = _EXPRESSIONS.get(node.__class__)
        return ir.Const(node, None) if handler is None else handler(self, node)

    def exprs(self, nodes: Sequence[Any]) -> tuple[ir.Expr, ...]:
        return tuple([self.expr(node) for node in nodes])

    def name(self, node: Any) -> ir.Expr:
        return ir.Name(node, node.id)

    def constant(self, node: Any) -> ir.Expr:
        value = node.value
        return ir.Const(node, None if value is Ellipsis else value)

    def attribute(self, node: Any) -> ir.Expr:
        return ir.Attr(node, self.expr(node.value), node.attr)

    def text(self, node: Any) -> ir.Expr:
        return ir.Text(
            node,
            tuple([self.expr(part.value) for part in node.values if isinstance(part, ast.FormattedValue)]),
        )

    def call(self, node: Any) -> ir.Expr:
        keywords: list[tuple[str | None, ir.Expr]] = []
        if not node.keywords:
            args = self.exprs(node.args)
        else:
            given: list[Any] = node.args + node.keywords
            if any(isinstance(arg, ast.Starred) for arg in node.args):
                given.sort(key=lambda arg: (arg.lineno, arg.col_offset))  # `f(k=1, *rest)`
            positional: list[ir.Expr] = []
            for arg in given:
                if isinstance(arg, ast.keyword):
                    keywords.append((arg.arg, self.expr(arg.value)))
                else:
                    positional.append(self.expr(arg))
            args = tuple(positional)
        return ir.Call(node, self.expr(node.func), args, tuple(keywords))

    def starred(self, node: Any) -> ir.Expr:
        return ir.Starred(node, "star", self.expr(node.value))

    def subscript(self, node: Any) -> ir.Expr:
        index = self.expr(node.slice)
        return ir.Sub(node, self.expr(node.value), index)

    def slice(self, node: Any) -> ir.Expr:
        parts = (node.lower, node.upper, node.step)
        return ir.Slice(node, *(None if part is None else self.expr(part) for part in parts))

    def binary(self, node: Any) -> ir.Expr:
        # A chain `a + b + … ` of a thousand terms leans left: walk it with a loop, not the stack.
        chain: list[Any] = []
        left = node
        while left.__class__ is ast.BinOp:
            chain.append(left)
            left = left.left
        result = self.expr(left)
        for link in reversed(chain):
            result = ir.Op(link, _BINARY[link.op.__class__], (result, self.expr(link.right)))
        return result

    def boolean(self, node: Any) -> ir.Expr:
        operator = "and" if node.op.__class__ is ast.And else "or"
        result = self.expr(node.values[0])
        *first, last = _nested(node)
        for link in first:
            result = ir.Op(link, operator, (result, self.expr(link.values[1])))
        return ir.Op(last, operator, (result, self.expr(last.values[1])))

    def unary(self, node: Any) -> ir.Expr:
        operand = self.expr(node.operand)
        if node.op.__class__ is ast.Not:
            return ir.Op(node, "not", (operand,))
        if node.op.__class__ is ast.USub and isinstance(operand, ir.Const):
            value = operand.value
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                return ir.Const(node, -value)
        return ir.Op(node, "neg", (operand,))

    def comparison(self, node: Any) -> ir.Expr:
        operator = "cmp" if len(node.ops) > 1 else _COMPARE.get(node.ops[0].__class__, "cmp")
        return ir.Op(node, operator, (self.expr(node.left), *self.exprs(node.comparators)))

    def conditional(self, node: Any) -> ir.Expr:
        return ir.Op(node, "if", (self.expr(node.test), self.expr(node.body), self.expr(node.orelse)))

    def sequence(self, node: Any) -> ir.Expr:
        return ir.Seq(node, node.__class__.__name__.lower(), self.exprs(node.elts))

    def dictionary(self, node: Any) -> ir.Expr:
        pairs: list[tuple[ir.Expr | None, ir.Expr]] = []
        for key, value in zip(node.keys, node.values, strict=True):
            pairs.append((None if key is None else self.expr(key), self.expr(value)))
        return ir.DictDisplay(node, tuple(pairs))

    def comprehension(self, node: Any) -> ir.Expr:
        kind = _COMPREHENSIONS[node.__class__]
        parts = (node.key, node.value) if kind == "dict" else (node.elt,)
        elements = self.exprs(parts)
        clauses: list[tuple[ir.Expr, ir.Expr, tuple[ir.Expr, ...]]] = []
        for clause in node.generators:
            tests = self.exprs(clause.ifs)
            clauses.append((self.expr(clause.target), self.expr(clause.iter), tests))
        return ir.Comp(node, kind, elements, tuple(clauses))

    def lambda_(self, node: Any) -> ir.Expr:
        outer = self.function
        params = self.params(node.args)
        function = ir.Function(
            node, "<lambda>", f"{self.prefix}<lambda>", params, [], cls=self.cls, parent=outer
        )
        self.function = function
        value = self.expr(node.body)
        self.function = outer
        statement = ir.Return(value)
        statement.origin = node.body
        function.body = [statement]
        self.module.functions.append(function)
        return ir.LambdaExpr(node, function)

    def await_(self, node: Any) -> ir.Expr:
        return ir.Wrapper(node, "await", self.expr(node.value))

    def yield_(self, node: Any) -> ir.Expr:
        self.function.is_generator = True
        value = ir.Const(node, None) if node.value is None else self.expr(node.value)
        return ir.Wrapper(node, "yield", value)

    def yield_from(self, node: Any) -> ir.Expr:
        self.function.is_generator = True
        return ir.Wrapper(node, "yield from", self.expr(node.value))

    def walrus(self, node: Any) -> ir.Expr:
        return ir.Walrus(node, self.expr(node.target), self.expr(node.value))

    # --- statements --------------------------------------------------------------------------------------------

    def block(self, body: Sequence[Any]) -> list[ir.Stmt]:
        result = ir.Block()
        for node in body:
            handler = _STATEMENTS.get(node.__class__)
            statement = handler(self, node) if handler is not None else None
            if statement is not None:
                statement.origin = node
                result.append(statement)
        return result

    def assign(self, node: Any) -> ir.Stmt:
        return ir.Assign(self.exprs(node.targets), self.expr(node.value))

    def ann_assign(self, node: Any) -> ir.Stmt:
        value = None if node.value is None else self.expr(node.value)
        return ir.Assign((self.expr(node.target),), value, self.expr(node.annotation))

    def aug_assign(self, node: Any) -> ir.Stmt:
        return ir.AugAssign(self.expr(node.target), _BINARY[node.op.__class__], self.expr(node.value))

    def expr_stmt(self, node: Any) -> ir.Stmt | None:
        value = node.value
        if value.__class__ is ast.Constant and (
            value.value is Ellipsis or isinstance(value.value, (str, bytes))
        ):
            return None
        return ir.ExprStmt(self.expr(value))

    def return_(self, node: Any) -> ir.Stmt:
        return ir.Return(None if node.value is None else self.expr(node.value))

    def raise_(self, node: Any) -> ir.Stmt:
        return ir.Jump("raise", () if node.exc is None else (self.expr(node.exc),))

    def break_(self, node: Any) -> ir.Stmt:
        return ir.Jump("break")

    def continue_(self, node: Any) -> ir.Stmt:
        return ir.Jump("continue")

    def delete(self, node: Any) -> ir.Stmt:
        targets = self.exprs(node.targets)
        if len(targets) == 1 and isinstance(targets[0], ir.Seq):
            targets = targets[0].items
        return ir.Delete(targets)

    def assert_(self, node: Any) -> ir.Stmt:
        return ir.Check((self.expr(node.test),))

    def global_(self, node: Any) -> ir.Stmt:
        return ir.Scope("global", tuple(node.names))

    def nonlocal_(self, node: Any) -> ir.Stmt:
        return ir.Scope("nonlocal", tuple(node.names))

    def import_(self, node: Any) -> ir.Stmt:
        bindings: list[tuple[str, str]] = []
        for alias in node.names:
            if alias.asname is not None:
                bindings.append((alias.asname, alias.name))
            else:
                first = alias.name.partition(".")[0]
                bindings.append((first, first))
        return self.bind(bindings)

    def import_from(self, node: Any) -> ir.Stmt | None:
        module = "." * node.level + (node.module or "")
        if node.names[0].name == "*":
            self.module.imports.setdefault(f"*{module}", module)
            return None
        separator = "" if module.endswith(".") else "."
        return self.bind(
            [(alias.asname or alias.name, f"{module}{separator}{alias.name}") for alias in node.names]
        )

    def bind(self, bindings: list[tuple[str, str]]) -> ir.Stmt:
        for local, full in bindings:
            self.module.imports.setdefault(local, full)
        return ir.Import(tuple(bindings))

    def if_(self, node: Any) -> ir.Stmt:
        # `elif` chains can be hundreds long: build them from the end.
        chain: list[Any] = [node]
        last: Sequence[Any] = node.orelse
        while len(last) == 1 and last[0].__class__ is ast.If:
            chain.append(last[0])
            last = last[0].orelse
        orelse = self.block(last)
        for link in reversed(chain):
            statement = ir.If(self.expr(link.test), self.block(link.body), orelse)
            statement.origin = link
            orelse = [statement]
        return statement

    def for_(self, node: Any) -> ir.Stmt:
        orelse = self.block(node.orelse)
        return ir.For(self.expr(node.target), self.expr(node.iter), self.block(node.body), orelse)

    def while_(self, node: Any) -> ir.Stmt:
        orelse = self.block(node.orelse)
        return ir.While(self.expr(node.test), self.block(node.body), orelse)

    def with_(self, node: Any) -> ir.Stmt:
        items: list[tuple[ir.Expr, ir.Expr | None]] = []
        for item in node.items:
            target = None if item.optional_vars is None else self.expr(item.optional_vars)
            items.append((self.expr(item.context_expr), target))
        return ir.With(tuple(items), self.block(node.body))

    def try_(self, node: Any) -> ir.Stmt:
        handlers: list[ir.Handler] = []
        for handler in node.handlers:
            types: tuple[ir.Expr, ...] = ()
            if handler.type is not None:
                kind = self.expr(handler.type)
                types = kind.items if isinstance(kind, ir.Seq) else (kind,)
            handlers.append(ir.Handler(handler, types, handler.name, self.block(handler.body)))
        orelse = self.block(node.orelse)
        final = self.block(node.finalbody)
        return ir.Try(self.block(node.body), tuple(handlers), orelse, final)

    def match(self, node: Any) -> ir.Stmt:
        cases: list[tuple[tuple[str, ...], ir.Expr | None, list[ir.Stmt]]] = []
        for case in node.cases:
            guard = None if case.guard is None else self.expr(case.guard)
            cases.append((_captures(case.pattern), guard, self.block(case.body)))
        return ir.Match(self.expr(node.subject), tuple(cases))

    def function_def(self, node: Any) -> ir.Stmt:
        outer, outer_cls, outer_prefix = self.function, self.cls, self.prefix
        name = node.name
        decorators = self.exprs(node.decorator_list)
        function = ir.Function(
            node,
            name,
            f"{outer_prefix}{name}",
            self.params(node.args),
            [],
            decorators,
            outer_cls,
            outer,
        )
        self.module.functions.append(function)
        self.function, self.cls, self.prefix = function, None, f"{outer_prefix}{name}.<locals>."
        function.body = self.block(node.body)
        self.function, self.cls, self.prefix = outer, outer_cls, outer_prefix
        if outer_cls is not None:
            outer_cls.methods[name] = function
        return ir.FunctionDef(function)

    def class_def(self, node: Any) -> ir.Stmt:
        outer_cls, outer_prefix = self.cls, self.prefix
        # `*bases`, and `Base[Config]`, which is `Base` with its types named.
        bases = self.exprs(
            [base.value if isinstance(base, (ast.Starred, ast.Subscript)) else base for base in node.bases]
        )
        decorators = self.exprs(node.decorator_list)
        cls = ir.Class(node, node.name, f"{outer_prefix}{node.name}", bases, decorators)
        self.module.classes[cls.qualname] = cls
        self.cls, self.prefix = cls, f"{cls.qualname}."
        cls.body = self.block(node.body)
        self.cls, self.prefix = outer_cls, outer_prefix
        return ir.ClassDef(cls)

    def params(self, node: ast.arguments) -> tuple[ir.Param, ...]:
        result: list[ir.Param] = []

        def add(param: Any, kind: str, default: Any) -> None:
            annotation = None if param.annotation is None else self.annotation(param.annotation)
            value = None if default is None else self.expr(default)
            result.append(ir.Param(param.arg, kind, annotation, value))

        positional = node.posonlyargs + node.args
        missing = len(positional) - len(node.defaults)
        for position, param in enumerate(positional):
            add(param, "normal", node.defaults[position - missing] if position >= missing else None)
        if node.vararg is not None:
            add(node.vararg, "star", None)
        for param, default in zip(node.kwonlyargs, node.kw_defaults, strict=True):
            add(param, "keyword", default)
        if node.kwarg is not None:
            add(node.kwarg, "doublestar", None)
        return tuple(result)

    def annotation(self, node: Any) -> ir.Expr:
        return ir.Const(node, None) if node.__class__ is ast.Starred else self.expr(node)


def _nested(node: ast.BoolOp) -> list[ast.BoolOp]:
    """`a and b and c`, one node to Python, as `(a and b) and c`, innermost first: each step has an origin of its own, and
    the same shape as in libcst. The node itself is changed and comes last."""
    links: list[ast.BoolOp] = []
    inner = node.values[0]
    for value in node.values[1:-1]:
        link = ast.BoolOp(node.op, [inner, value])
        inner = ast.copy_location(link, node)
        link.end_lineno, link.end_col_offset = value.end_lineno, value.end_col_offset
        links.append(link)
    node.values = [inner, node.values[-1]]
    return [*links, node]


def _captures(pattern: ast.AST) -> tuple[str, ...]:
    names: list[str] = []
    for node in ast.walk(pattern):
        if isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name is not None:
            names.append(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest is not None:
            names.append(node.rest)
    return tuple(sorted(names))


_EXPRESSIONS: dict[type, Callable[[_Lowering, Any], ir.Expr]] = {
    ast.Name: _Lowering.name,
    ast.Constant: _Lowering.constant,
    ast.Attribute: _Lowering.attribute,
    ast.Call: _Lowering.call,
    ast.Starred: _Lowering.starred,
    ast.JoinedStr: _Lowering.text,
    ast.Subscript: _Lowering.subscript,
    ast.Slice: _Lowering.slice,
    ast.BinOp: _Lowering.binary,
    ast.BoolOp: _Lowering.boolean,
    ast.UnaryOp: _Lowering.unary,
    ast.Compare: _Lowering.comparison,
    ast.IfExp: _Lowering.conditional,
    ast.List: _Lowering.sequence,
    ast.Tuple: _Lowering.sequence,
    ast.Set: _Lowering.sequence,
    ast.Dict: _Lowering.dictionary,
    ast.ListComp: _Lowering.comprehension,
    ast.SetComp: _Lowering.comprehension,
    ast.DictComp: _Lowering.comprehension,
    ast.GeneratorExp: _Lowering.comprehension,
    ast.Lambda: _Lowering.lambda_,
    ast.Await: _Lowering.await_,
    ast.Yield: _Lowering.yield_,
    ast.YieldFrom: _Lowering.yield_from,
    ast.NamedExpr: _Lowering.walrus,
}

_STATEMENTS: dict[type, Callable[[_Lowering, Any], ir.Stmt | None]] = {
    ast.Assign: _Lowering.assign,
    ast.AnnAssign: _Lowering.ann_assign,
    ast.AugAssign: _Lowering.aug_assign,
    ast.Expr: _Lowering.expr_stmt,
    ast.Return: _Lowering.return_,
    ast.Raise: _Lowering.raise_,
    ast.Break: _Lowering.break_,
    ast.Continue: _Lowering.continue_,
    ast.Delete: _Lowering.delete,
    ast.Assert: _Lowering.assert_,
    ast.Global: _Lowering.global_,
    ast.Nonlocal: _Lowering.nonlocal_,
    ast.Import: _Lowering.import_,
    ast.ImportFrom: _Lowering.import_from,
    ast.If: _Lowering.if_,
    ast.For: _Lowering.for_,
    ast.AsyncFor: _Lowering.for_,
    ast.While: _Lowering.while_,
    ast.With: _Lowering.with_,
    ast.AsyncWith: _Lowering.with_,
    ast.Try: _Lowering.try_,
    ast.Match: _Lowering.match,
    ast.FunctionDef: _Lowering.function_def,
    ast.AsyncFunctionDef: _Lowering.function_def,
    ast.ClassDef: _Lowering.class_def,
}
if hasattr(ast, "TryStar"):  # Python 3.11
    _STATEMENTS[ast.TryStar] = _Lowering.try_
