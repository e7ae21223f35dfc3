"""Statements put before, after and into others of a module, the import of the kit, and callbacks for trainers of frameworks, which have
their loops out of sight."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import libcst as cst
from libcst import matchers as m

from gpulint.codemods.shape import Loop, all_calls, dotted, full_names, walk
from gpulint.source.positions import nodes_below

KIT = "gpulint"


_Added = defaultdict[int, list[cst.SimpleStatementLine]]


@dataclass(slots=True)
class Plan:
    """Changes by the identity of the original node."""

    before: _Added = field(default_factory=lambda: defaultdict(list))
    after: _Added = field(default_factory=lambda: defaultdict(list))
    end: _Added = field(default_factory=lambda: defaultdict(list))
    change: dict[int, Callable[[Any], Any]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.before or self.after or self.end or self.change)

    def put_before(self, node: cst.CSTNode, *code: str) -> None:
        self.before[id(node)] += map(statement, code)

    def put_after(self, node: cst.CSTNode, *code: str) -> None:
        self.after[id(node)] += map(statement, code)

    def put_at_end(self, loop: Loop, *code: str) -> None:
        self.end[id(loop)] += map(statement, code)

    def carry_out(self, module: cst.Module, name: str, imported: bool) -> cst.Module:
        """The module with the changes, if any, and with the import of the kit under `name` unless it is `imported`."""
        if not self:
            return module
        made = module.visit(_Carrier(self))
        assert isinstance(made, cst.Module)
        return made if imported else with_import(made, name)


def statement(code: str) -> cst.SimpleStatementLine:
    """A statement of one line."""
    made = cst.parse_statement(code)
    assert isinstance(made, cst.SimpleStatementLine)
    return made


class _Carrier(cst.CSTTransformer):
    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        updated: Any = super().on_leave(original_node, updated_node)
        key = id(original_node)
        if end := self.plan.end.get(key):
            updated = updated.with_deep_changes(updated.body, body=[*updated.body.body, *end])
        if key in self.plan.change:
            updated = self.plan.change[key](updated)
        before, after = self.plan.before.get(key, []), self.plan.after.get(key, ())
        if before:
            before[0], updated = _led(before[0], updated)
        return cst.FlattenSentinel([*before, updated, *after]) if before or after else updated


def _led(first: cst.SimpleStatementLine, node: Any) -> tuple[cst.SimpleStatementLine, Any]:
    """A statement put before another: blank lines stay above both, comments with what they are about."""
    lines = list(node.leading_lines)
    blank = next((at for at, line in enumerate(lines) if line.comment is not None), len(lines))
    return first.with_changes(leading_lines=lines[:blank]), node.with_changes(leading_lines=lines[blank:])


# -- the import ------------------------------------------------------------------------------------------------


def kit_name(module: cst.Module) -> tuple[str, bool]:
    """The name of `gpulint.memory` in this module, and whether it is imported already. Where `memory` means
    something else here, the kit is called `gpu_memory`."""
    for node in walk(module):
        if isinstance(node, cst.ImportFrom) and not isinstance(node.names, cst.ImportStar):
            ours = node.module is not None and dotted(node.module) == KIT
            for alias in node.names if ours else ():
                if alias.evaluated_name == "memory":
                    return alias.evaluated_alias or "memory", True
    return ("gpu_memory" if _binds(module, "memory") else "memory"), False


def _binds(module: cst.Module, name: str) -> bool:
    """Whether anything in a module makes this name: assignments, parameters, imports, definitions, loops."""
    for node in nodes_below(module):
        if isinstance(node, cst.ImportAlias) and node.asname is None:
            if node.evaluated_name.split(".")[0] == name:
                return True
            continue
        bound = node.target if isinstance(node, _BINDING) else node.name if isinstance(node, _NAMED) else None
        if bound is not None and not isinstance(bound, (cst.Attribute, cst.Subscript)):
            if any(isinstance(one, cst.Name) and one.value == name for one in (bound, *walk(bound))):
                return True
    return False


_BINDING = (cst.AssignTarget, cst.AnnAssign, cst.NamedExpr, cst.For, cst.CompFor)
_NAMED = (cst.Param, cst.FunctionDef, cst.ClassDef, cst.AsName)


def import_of(name: str) -> cst.SimpleStatementLine:
    """The import of the kit under this name."""
    return statement(f"from {KIT} import memory{'' if name == 'memory' else f' as {name}'}")


def with_import(
    module: cst.Module, name: str, *more: cst.SimpleStatementLine, imported: bool = False
) -> cst.Module:
    """Import the kit under `name` after the imports at the top unless it is `imported`, followed by `more`."""
    place, body = after_imports(module), module.body
    added = [] if imported else [import_of(name)]
    for number, line in enumerate(more):
        added.append(line if number else line.with_changes(leading_lines=[cst.EmptyLine(indent=False)]))
    return module.with_changes(body=[*body[:place], *added, *body[place:]])


def after_imports(module: cst.Module) -> int:
    """The index in the module's body behind its docstring and its leading imports, also those under try or if."""
    place = 0
    for index, each in enumerate(module.body):
        if _is_import(each) or (index == 0 and _is_docstring(each)):
            place = index + 1
        elif not _is_setup(each):
            break
    return place


def _is_import(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.SimpleStatementLine):
        return all(isinstance(small, (cst.Import, cst.ImportFrom)) for small in node.body)
    if isinstance(node, (cst.Try, cst.If)) and isinstance(node.body, cst.IndentedBlock):
        return all(_is_import(each) for each in node.body.body)
    return False


def _is_docstring(node: cst.CSTNode) -> bool:
    text = m.SimpleString() | m.ConcatenatedString()
    return m.matches(node, m.SimpleStatementLine(body=[m.Expr(text)]))


def _is_setup(node: cst.CSTNode) -> bool:
    """What people put between imports: the environment, the path, warnings."""
    names = {"environ", "os", "sys", "warnings", "matplotlib"}
    named = (n.value for n in walk(node) if isinstance(n, cst.Name))
    return isinstance(node, cst.SimpleStatementLine) and not names.isdisjoint(named)


def calls_kit(module: cst.Module, *functions: str) -> bool:
    """Whether the module calls one of these functions of the kit already."""
    name, imported = kit_name(module)
    if not imported:
        return False
    wanted = {f"{name}.{function}" for function in functions}
    return any(dotted(call.func) in wanted for call in all_calls(module))


# Where a Trainer comes from, and which callback of Monitor it takes.
_FRAMEWORKS: Final = {
    "lightning": "lightning_callback",
    "lightning.pytorch": "lightning_callback",
    "pytorch_lightning": "lightning_callback",
    "transformers": "huggingface_callback",
}
_CLASSES: Final = {"Trainer", "Seq2SeqTrainer"}


def trainer_calls(module: cst.Module) -> Iterator[tuple[cst.Call, str]]:
    """The calls that make a trainer, with the name of the callback that it takes."""
    full_name = full_names(module)
    for call in all_calls(module):
        framework, _, made = full_name(call.func).rpartition(".")
        if made in _CLASSES and framework in _FRAMEWORKS:
            yield call, _FRAMEWORKS[framework]


def with_callback(call: cst.Call, code: str) -> cst.Call:
    """The call with one more callback, in the layout that its arguments have."""
    value = cst.parse_expression(code)
    given = [index for index, arg in enumerate(call.args) if _keyword(arg) == "callbacks"]
    args = list(call.args)
    if given:
        held = args[given[0]].value
        assert isinstance(held, cst.List)
        args[given[0]] = args[given[0]].with_changes(value=_appended(held, value))
        return call.with_changes(args=args)
    new = cst.Arg(
        keyword=cst.Name("callbacks"),
        value=cst.List([cst.Element(value)]),
        equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
    )
    if args:
        last = args[-1]
        if isinstance(last.comma, cst.Comma):
            between, closing = _between(call.whitespace_before_args, last.comma.whitespace_after)
            new = new.with_changes(comma=cst.Comma(whitespace_after=closing))
        else:
            between, closing = _between(call.whitespace_before_args, last.whitespace_after_arg)
            new = new.with_changes(whitespace_after_arg=closing)
        comma = cst.Comma(whitespace_after=between)
        args[-1] = last.with_changes(comma=comma, whitespace_after_arg=cst.SimpleWhitespace(""))
    return call.with_changes(args=[*args, new])


def _appended(held: cst.List, value: cst.BaseExpression) -> cst.List:
    if not held.elements:
        return held.with_changes(elements=[cst.Element(value)])
    *others, last = held.elements
    between, closing = _between(held.lbracket.whitespace_after, held.rbracket.whitespace_before)
    last, new = last.with_changes(comma=cst.Comma(whitespace_after=between)), cst.Element(value, last.comma)
    bracket = held.rbracket.with_changes(whitespace_before=closing)
    return held.with_changes(elements=[*others, last, new], rbracket=bracket)


_Blank = cst.BaseParenthesizableWhitespace


def _between(opening: _Blank, closing: _Blank) -> tuple[_Blank, _Blank]:
    """What stands before a new last entry, and after it. A comment behind the entry that was the last one stays there;
    entries on lines of their own stay so."""
    if not isinstance(opening, cst.ParenthesizedWhitespace):
        return cst.SimpleWhitespace(" "), closing
    if not isinstance(closing, cst.ParenthesizedWhitespace):
        return opening.with_changes(first_line=cst.TrailingWhitespace()), closing
    return (
        opening.with_changes(first_line=closing.first_line, empty_lines=closing.empty_lines),
        closing.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=[]),
    )


def takes_callback(call: cst.Call) -> bool:
    """Whether a trainer's call can be given one more. Not where the callbacks may come out of sight: in `**options`, or in a variable."""
    return not any(
        arg.star or (_keyword(arg) == "callbacks" and not isinstance(arg.value, cst.List))
        for arg in call.args
    )


def _keyword(arg: cst.Arg) -> str:
    return arg.keyword.value if arg.keyword is not None else ""
