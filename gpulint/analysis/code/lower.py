"""libcst module → functions, classes, loops and statements, in one pass and without a metadata provider."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import libcst as cst

from gpulint.analysis.code import ir

_BINARY = {
    "Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "FloorDivide": "//", "Modulo": "%", "Power": "**",
    "MatrixMultiply": "@", "BitOr": "|", "BitAnd": "&", "BitXor": "^", "LeftShift": "<<", "RightShift": ">>",
}  # fmt: skip


def lower(module: cst.Module) -> ir.Module:
    """Lower a parsed module. Raises RecursionError where it is nested deeper than Python's stack allows."""
    return _Lowering(module).run()


class _Lowering:
    def __init__(self, module: cst.Module) -> None:
        self.node = module
        self.function = ir.Function(module, "<module>", "<module>", (), [])
        self.module = ir.Module(module, self.function)
        self.cls: ir.Class | None = None
        self.prefix = ""

    def run(self) -> ir.Module:
        self.module.functions.append(self.function)
        self.function.body = self.block(self.node.body)
        return self.module

    # --- expressions -------------------------------------------------------------------------------------------

    def expr(self, node: cst.CSTNode) -> ir.Expr:
        handler = _EXPRESSIONS.get(type(node).__name__)
        if handler is None:
            return ir.Const(node, None)
        return handler(self, node)

    def name(self, node: cst.Name) -> ir.Expr:
        if node.value in _CONSTANTS:
            return ir.Const(node, _CONSTANTS[node.value])
        return ir.Name(node, node.value)

    def attribute(self, node: cst.Attribute) -> ir.Expr:
        return ir.Attr(node, self.expr(node.value), node.attr.value)

    def literal(self, node: Any) -> ir.Expr:
        text = node.value
        if text[0] in "'\"" and "\\" not in text and text[:3] not in ('"""', "'''") and "\n" not in text:
            return ir.Const(node, text[1:-1])
        if text.isdecimal() and text[0] != "0":
            return ir.Const(node, int(text))
        try:
            return ir.Const(node, ast.literal_eval(text))
        except (ValueError, SyntaxError):
            return ir.Const(node, node.value)

    def text(self, node: cst.FormattedString) -> ir.Expr:
        parts: list[ir.Expr] = []
        for part in node.parts:
            if isinstance(part, cst.FormattedStringExpression):
                parts.append(self.expr(part.expression))
        return ir.Text(node, tuple(parts))

    def concatenated(self, node: cst.ConcatenatedString) -> ir.Expr:
        pieces: list[cst.BaseExpression] = []
        rest: cst.BaseExpression = node
        while isinstance(rest, cst.ConcatenatedString):
            pieces.append(rest.left)
            rest = rest.right
        pieces.append(rest)
        if all(isinstance(piece, cst.SimpleString) for piece in pieces):
            return ir.Const(node, node.evaluated_value)
        inner = [self.expr(piece) for piece in pieces if isinstance(piece, cst.FormattedString)]
        return ir.Text(node, tuple(part for piece in inner for part in piece.children()))

    def call(self, node: cst.Call) -> ir.Expr:
        args: list[ir.Expr] = []
        keywords: list[tuple[str | None, ir.Expr]] = []
        for arg in node.args:
            value = self.expr(arg.value)
            if arg.keyword is not None:
                keywords.append((arg.keyword.value, value))
            elif arg.star == "*":
                args.append(ir.Starred(arg.value, "star", value))
            elif arg.star == "**":
                keywords.append((None, value))
            else:
                args.append(value)
        return ir.Call(node, self.expr(node.func), tuple(args), tuple(keywords))

    def subscript(self, node: cst.Subscript) -> ir.Expr:
        indices = [self.index(element.slice) for element in node.slice]
        single = len(indices) == 1 and not isinstance(node.slice[0].comma, cst.Comma)
        if single and not isinstance(indices[0], ir.Starred):
            index = indices[0]
        else:
            index = ir.Seq(node, "tuple", tuple(indices))
        return ir.Sub(node, self.expr(node.value), index)

    def index(self, node: cst.BaseSlice) -> ir.Expr:
        if isinstance(node, cst.Slice):
            parts = (node.lower, node.upper, node.step)
            return ir.Slice(node, tuple(self.expr(part) for part in parts if part is not None))
        assert isinstance(node, cst.Index)
        value = self.expr(node.value)
        return ir.Starred(node, "star", value) if node.star else value

    def binary(self, node: cst.BinaryOperation) -> ir.Expr:
        # A chain `a + b + … ` of a thousand terms leans left: walk it with a loop, not the stack.
        chain: list[cst.BinaryOperation] = []
        left: cst.BaseExpression = node
        while isinstance(left, cst.BinaryOperation):
            chain.append(left)
            left = left.left
        result = self.expr(left)
        for link in reversed(chain):
            operator = _BINARY.get(type(link.operator).__name__, "?")
            result = ir.Op(link, operator, (result, self.expr(link.right)))
        return result

    def boolean(self, node: cst.BooleanOperation) -> ir.Expr:
        operator = "and" if isinstance(node.operator, cst.And) else "or"
        return ir.Op(node, operator, (self.expr(node.left), self.expr(node.right)))

    def unary(self, node: cst.UnaryOperation) -> ir.Expr:
        operand = self.expr(node.expression)
        if isinstance(node.operator, cst.Not):
            return ir.Op(node, "not", (operand,))
        if isinstance(node.operator, cst.Minus) and isinstance(operand, ir.Const):
            value = operand.value
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                return ir.Const(node, -value)
        return ir.Op(node, "neg", (operand,))

    def comparison(self, node: cst.Comparison) -> ir.Expr:
        operands = [self.expr(node.left), *(self.expr(part.comparator) for part in node.comparisons)]
        operator = "cmp"
        if len(operands) == 2:
            kind = type(node.comparisons[0].operator)
            operator = {cst.Is: "is", cst.IsNot: "is not", cst.In: "in", cst.NotIn: "not in"}.get(kind, "cmp")
            if kind is cst.Equal:
                operator = "=="
            elif kind is cst.NotEqual:
                operator = "!="
        return ir.Op(node, operator, tuple(operands))

    def conditional(self, node: cst.IfExp) -> ir.Expr:
        return ir.Op(node, "if", (self.expr(node.test), self.expr(node.body), self.expr(node.orelse)))

    def sequence(self, node: cst.List | cst.Tuple | cst.Set) -> ir.Expr:
        kind = type(node).__name__.lower()
        items: list[ir.Expr] = []
        for element in node.elements:
            value = self.expr(element.value)
            if isinstance(element, cst.StarredElement):
                value = ir.Starred(element, "star", value)
            items.append(value)
        return ir.Seq(node, kind, tuple(items))

    def dictionary(self, node: cst.Dict) -> ir.Expr:
        pairs: list[tuple[ir.Expr | None, ir.Expr]] = []
        for element in node.elements:
            if isinstance(element, cst.DictElement):
                pairs.append((self.expr(element.key), self.expr(element.value)))
            else:
                pairs.append((None, self.expr(element.value)))
        return ir.DictDisplay(node, tuple(pairs))

    def comprehension(self, node: Any) -> ir.Expr:
        kind = {"ListComp": "list", "SetComp": "set", "DictComp": "dict", "GeneratorExp": "generator"}[
            type(node).__name__
        ]
        parts = (node.key, node.value) if kind == "dict" else (node.elt,)
        elements = tuple(self.expr(part) for part in parts)
        clauses: list[tuple[ir.Expr, ir.Expr, tuple[ir.Expr, ...]]] = []
        clause: cst.CompFor | None = node.for_in
        while clause is not None:
            tests = tuple(self.expr(test.test) for test in clause.ifs)
            clauses.append((self.expr(clause.target), self.expr(clause.iter), tests))
            clause = clause.inner_for_in
        return ir.Comp(node, kind, elements, tuple(clauses))

    def lambda_(self, node: cst.Lambda) -> ir.Expr:
        outer = self.function
        function = ir.Function(
            node,
            "<lambda>",
            f"{self.prefix}<lambda>",
            self.params(node.params),
            [],
            cls=self.cls,
            parent=outer,
        )
        self.function = function
        value = self.expr(node.body)
        self.function = outer
        statement = ir.Return(value)
        statement.node = statement.line = node.body
        function.body = [statement]
        self.module.functions.append(function)
        return ir.LambdaExpr(node, function)

    def await_(self, node: cst.Await) -> ir.Expr:
        return ir.Wrapper(node, "await", self.expr(node.expression))

    def yield_(self, node: cst.Yield) -> ir.Expr:
        self.function.is_generator = True
        if node.value is None:
            return ir.Wrapper(node, "yield", ir.Const(node, None))
        if isinstance(node.value, cst.From):
            return ir.Wrapper(node, "yield from", self.expr(node.value.item))
        return ir.Wrapper(node, "yield", self.expr(node.value))

    def walrus(self, node: cst.NamedExpr) -> ir.Expr:
        return ir.Walrus(node, self.expr(node.target), self.expr(node.value))

    # --- statements --------------------------------------------------------------------------------------------

    def block(self, body: Sequence[cst.CSTNode]) -> list[ir.Stmt]:
        result: list[ir.Stmt] = []
        for node in body:
            if isinstance(node, cst.SimpleStatementLine):
                self.small(node.body, node, result)
            else:
                statement = self.compound(node)
                if statement is not None:
                    statement.node = statement.line = node
                    result.append(statement)
        return result

    def suite(self, node: cst.BaseSuite) -> list[ir.Stmt]:
        if isinstance(node, cst.SimpleStatementSuite):
            result: list[ir.Stmt] = []
            self.small(node.body, node, result)
            return result
        return self.block(node.body)

    def small(
        self, nodes: Sequence[cst.BaseSmallStatement], line: cst.CSTNode, result: list[ir.Stmt]
    ) -> None:
        for node in nodes:
            handler = _SMALL.get(type(node).__name__)
            statement = handler(self, node) if handler is not None else None
            if statement is not None:
                statement.node = node
                statement.line = line
                result.append(statement)

    def assign(self, node: cst.Assign) -> ir.Stmt:
        return ir.Assign(tuple(self.expr(target.target) for target in node.targets), self.expr(node.value))

    def ann_assign(self, node: cst.AnnAssign) -> ir.Stmt:
        value = None if node.value is None else self.expr(node.value)
        return ir.Assign((self.expr(node.target),), value, self.expr(node.annotation.annotation))

    def aug_assign(self, node: cst.AugAssign) -> ir.Stmt:
        operator = _BINARY.get(type(node.operator).__name__.removesuffix("Assign"), "?")
        return ir.AugAssign(self.expr(node.target), operator, self.expr(node.value))

    def expr_stmt(self, node: cst.Expr) -> ir.Stmt | None:
        if isinstance(node.value, (cst.SimpleString, cst.Ellipsis)):
            return None
        value = self.expr(node.value)
        if isinstance(value, ir.Const) and isinstance(value.value, (str, bytes)):
            return None  # a docstring in several pieces
        return ir.ExprStmt(value)

    def return_(self, node: cst.Return) -> ir.Stmt:
        return ir.Return(None if node.value is None else self.expr(node.value))

    def raise_(self, node: cst.Raise) -> ir.Stmt:
        return ir.Jump("raise", () if node.exc is None else (self.expr(node.exc),))

    def break_(self, node: cst.Break) -> ir.Stmt:
        return ir.Jump("break")

    def continue_(self, node: cst.Continue) -> ir.Stmt:
        return ir.Jump("continue")

    def delete(self, node: cst.Del) -> ir.Stmt:
        target = self.expr(node.target)
        return ir.Delete(target.items if isinstance(target, ir.Seq) else (target,))

    def assert_(self, node: cst.Assert) -> ir.Stmt:
        return ir.Check((self.expr(node.test),))

    def global_(self, node: cst.Global) -> ir.Stmt:
        return ir.Scope("global", tuple(item.name.value for item in node.names))

    def nonlocal_(self, node: cst.Nonlocal) -> ir.Stmt:
        return ir.Scope("nonlocal", tuple(item.name.value for item in node.names))

    def import_(self, node: cst.Import) -> ir.Stmt:
        bindings: list[tuple[str, str]] = []
        for alias in node.names:
            full = dotted(alias.name)
            if alias.asname is not None:
                bindings.append((dotted(alias.asname.name), full))
            else:
                first = full.split(".")[0]
                bindings.append((first, first))
        return self.bind(bindings)

    def import_from(self, node: cst.ImportFrom) -> ir.Stmt | None:
        module = "." * len(node.relative) + ("" if node.module is None else dotted(node.module))
        if isinstance(node.names, cst.ImportStar):
            self.module.imports.setdefault(f"*{module}", module)
            return None
        separator = "" if module.endswith(".") else "."
        bindings: list[tuple[str, str]] = []
        for alias in node.names:
            full = dotted(alias.name)
            local = full if alias.asname is None else dotted(alias.asname.name)
            bindings.append((local, f"{module}{separator}{full}"))
        return self.bind(bindings)

    def bind(self, bindings: list[tuple[str, str]]) -> ir.Stmt:
        for local, full in bindings:
            self.module.imports.setdefault(local, full)
        return ir.Import(tuple(bindings))

    def compound(self, node: cst.CSTNode) -> ir.Stmt | None:
        handler = _COMPOUND.get(type(node).__name__)
        return handler(self, node) if handler is not None else None

    def if_(self, node: cst.If) -> ir.Stmt:
        # `elif` chains can be hundreds long: build them from the end.
        chain: list[cst.If] = [node]
        while isinstance(chain[-1].orelse, cst.If):
            chain.append(chain[-1].orelse)
        last = chain[-1].orelse
        orelse: list[ir.Stmt] = self.suite(last.body) if isinstance(last, cst.Else) else []
        for link in reversed(chain):
            statement = ir.If(self.expr(link.test), self.suite(link.body), orelse)
            statement.node = statement.line = link
            orelse = [statement]
        return statement

    def for_(self, node: cst.For) -> ir.Stmt:
        orelse = [] if node.orelse is None else self.suite(node.orelse.body)
        return ir.For(self.expr(node.target), self.expr(node.iter), self.suite(node.body), orelse)

    def while_(self, node: cst.While) -> ir.Stmt:
        orelse = [] if node.orelse is None else self.suite(node.orelse.body)
        return ir.While(self.expr(node.test), self.suite(node.body), orelse)

    def with_(self, node: cst.With) -> ir.Stmt:
        items: list[tuple[ir.Expr, ir.Expr | None]] = []
        for item in node.items:
            target = None if item.asname is None else self.expr(item.asname.name)
            items.append((self.expr(item.item), target))
        return ir.With(tuple(items), self.suite(node.body))

    def try_(self, node: cst.Try | cst.TryStar) -> ir.Stmt:
        handlers: list[ir.Handler] = []
        for handler in node.handlers:
            types: tuple[ir.Expr, ...] = ()
            if handler.type is not None:
                kind = self.expr(handler.type)
                types = kind.items if isinstance(kind, ir.Seq) else (kind,)
            name = None if handler.name is None else dotted(handler.name.name)
            handlers.append(ir.Handler(handler, types, name, self.suite(handler.body)))
        orelse = [] if node.orelse is None else self.suite(node.orelse.body)
        final = [] if node.finalbody is None else self.suite(node.finalbody.body)
        return ir.Try(self.suite(node.body), tuple(handlers), orelse, final)

    def match(self, node: cst.Match) -> ir.Stmt:
        cases: list[tuple[tuple[str, ...], ir.Expr | None, list[ir.Stmt]]] = []
        for case in node.cases:
            guard = None if case.guard is None else self.expr(case.guard)
            cases.append((tuple(sorted(_captures(case.pattern))), guard, self.suite(case.body)))
        return ir.Match(self.expr(node.subject), tuple(cases))

    def function_def(self, node: cst.FunctionDef) -> ir.Stmt:
        outer, outer_cls, outer_prefix = self.function, self.cls, self.prefix
        name = node.name.value
        decorators = tuple(self.expr(item.decorator) for item in node.decorators)
        function = ir.Function(
            node, name, f"{outer_prefix}{name}", self.params(node.params), [], decorators, outer_cls, outer
        )
        function.is_async = node.asynchronous is not None
        self.module.functions.append(function)
        self.function, self.cls, self.prefix = function, None, f"{outer_prefix}{name}.<locals>."
        function.body = self.suite(node.body)
        self.function, self.cls, self.prefix = outer, outer_cls, outer_prefix
        if outer_cls is not None:
            outer_cls.methods[name] = function
        return ir.FunctionDef(function)

    def class_def(self, node: cst.ClassDef) -> ir.Stmt:
        outer_cls, outer_prefix = self.cls, self.prefix
        name = node.name.value
        bases = tuple(self.expr(arg.value) for arg in node.bases)
        decorators = tuple(self.expr(item.decorator) for item in node.decorators)
        cls = ir.Class(node, name, f"{outer_prefix}{name}", bases, decorators)
        self.module.classes[cls.qualname] = cls
        self.cls, self.prefix = cls, f"{cls.qualname}."
        cls.body = self.suite(node.body)
        self.cls, self.prefix = outer_cls, outer_prefix
        return ir.ClassDef(cls)

    def params(self, node: cst.Parameters) -> tuple[ir.Param, ...]:
        result: list[ir.Param] = []

        def add(param: cst.Param, kind: str) -> None:
            annotation = None if param.annotation is None else self.expr(param.annotation.annotation)
            default = None if param.default is None else self.expr(param.default)
            result.append(ir.Param(param.name.value, kind, annotation, default))

        for param in (*node.posonly_params, *node.params):
            add(param, "normal")
        if isinstance(node.star_arg, cst.Param):
            add(node.star_arg, "star")
        for param in node.kwonly_params:
            add(param, "keyword")
        if node.star_kwarg is not None:
            add(node.star_kwarg, "doublestar")
        return tuple(result)


def dotted(node: cst.CSTNode) -> str:
    """`a.b.c` of a Name or Attribute; '' for anything else."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return ""
    parts.append(node.value)
    return ".".join(reversed(parts))


def _captures(pattern: cst.CSTNode) -> list[str]:
    names: list[str] = []
    stack: list[cst.CSTNode] = [pattern]
    while stack:
        node = stack.pop()
        if isinstance(node, (cst.MatchAs, cst.MatchStar)) and node.name is not None:
            names.append(node.name.value)
        if isinstance(node, cst.MatchMapping) and node.rest is not None:
            names.append(node.rest.value)
        stack.extend(child for child in node.children if not isinstance(child, cst.BaseExpression))
    return names


_CONSTANTS: dict[str, Any] = {"True": True, "False": False, "None": None}

_EXPRESSIONS: dict[str, Callable[[_Lowering, Any], ir.Expr]] = {
    "Name": _Lowering.name,
    "Attribute": _Lowering.attribute,
    "Call": _Lowering.call,
    "Integer": _Lowering.literal,
    "Float": _Lowering.literal,
    "Imaginary": _Lowering.literal,
    "SimpleString": _Lowering.literal,
    "FormattedString": _Lowering.text,
    "ConcatenatedString": _Lowering.concatenated,
    "Subscript": _Lowering.subscript,
    "BinaryOperation": _Lowering.binary,
    "BooleanOperation": _Lowering.boolean,
    "UnaryOperation": _Lowering.unary,
    "Comparison": _Lowering.comparison,
    "IfExp": _Lowering.conditional,
    "List": _Lowering.sequence,
    "Tuple": _Lowering.sequence,
    "Set": _Lowering.sequence,
    "Dict": _Lowering.dictionary,
    "ListComp": _Lowering.comprehension,
    "SetComp": _Lowering.comprehension,
    "DictComp": _Lowering.comprehension,
    "GeneratorExp": _Lowering.comprehension,
    "Lambda": _Lowering.lambda_,
    "Await": _Lowering.await_,
    "Yield": _Lowering.yield_,
    "NamedExpr": _Lowering.walrus,
}

_SMALL: dict[str, Callable[[_Lowering, Any], ir.Stmt | None]] = {
    "Assign": _Lowering.assign,
    "AnnAssign": _Lowering.ann_assign,
    "AugAssign": _Lowering.aug_assign,
    "Expr": _Lowering.expr_stmt,
    "Return": _Lowering.return_,
    "Raise": _Lowering.raise_,
    "Break": _Lowering.break_,
    "Continue": _Lowering.continue_,
    "Del": _Lowering.delete,
    "Assert": _Lowering.assert_,
    "Global": _Lowering.global_,
    "Nonlocal": _Lowering.nonlocal_,
    "Import": _Lowering.import_,
    "ImportFrom": _Lowering.import_from,
}

_COMPOUND: dict[str, Callable[[_Lowering, Any], ir.Stmt | None]] = {
    "If": _Lowering.if_,
    "For": _Lowering.for_,
    "While": _Lowering.while_,
    "With": _Lowering.with_,
    "Try": _Lowering.try_,
    "TryStar": _Lowering.try_,
    "Match": _Lowering.match,
    "FunctionDef": _Lowering.function_def,
    "ClassDef": _Lowering.class_def,
}
