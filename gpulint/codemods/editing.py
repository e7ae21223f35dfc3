"""Statements put before, after and into others of a module, and the import of the kit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from gpulint.codemods.shape import Loop, all_calls, dotted, walk
from gpulint.source.positions import nodes_below

KIT = "gpulint"


@dataclass(slots=True)
class Plan:
    """Changes by the identity of the original node."""

    before: dict[int, list[cst.SimpleStatementLine]] = field(default_factory=dict)
    after: dict[int, list[cst.SimpleStatementLine]] = field(default_factory=dict)
    end: dict[int, list[cst.SimpleStatementLine]] = field(default_factory=dict)
    change: dict[int, Callable[[Any], Any]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.before or self.after or self.end or self.change)

    def put_before(self, node: cst.CSTNode, *code: str) -> None:
        self.before.setdefault(id(node), []).extend(statement(text) for text in code)

    def put_after(self, node: cst.CSTNode, *code: str) -> None:
        self.after.setdefault(id(node), []).extend(statement(text) for text in code)

    def put_at_end(self, loop: Loop, *code: str) -> None:
        self.end.setdefault(id(loop), []).extend(statement(text) for text in code)

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
        if key in self.plan.end:
            updated = _extended(updated, self.plan.end[key])
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


def _extended(loop: Loop, statements: Sequence[cst.SimpleStatementLine]) -> Loop:
    body = loop.body
    assert isinstance(body, cst.IndentedBlock)
    return loop.with_changes(body=body.with_changes(body=[*body.body, *statements]))


# -- the import ------------------------------------------------------------------------------------------------


def kit_name(module: cst.Module) -> tuple[str, bool]:
    """The name of `gpulint.memory` in this module, and whether it is imported already. Where `memory` means
    something else here, the kit is called `gpu_memory`."""
    for node in walk(module):
        if isinstance(node, cst.ImportFrom) and not isinstance(node.names, cst.ImportStar):
            for alias in node.names:
                if (
                    node.module is not None
                    and dotted(node.module) == KIT
                    and alias.evaluated_name == "memory"
                ):
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
    return (
        isinstance(node, cst.SimpleStatementLine)
        and len(node.body) == 1
        and isinstance(node.body[0], cst.Expr)
        and isinstance(node.body[0].value, (cst.SimpleString, cst.ConcatenatedString))
    )


def _is_setup(node: cst.CSTNode) -> bool:
    """What people put between imports: the environment, the path, warnings."""
    if not isinstance(node, cst.SimpleStatementLine):
        return False
    names = {n.value for n in walk(node) if isinstance(n, cst.Name)}
    return bool(names & {"environ", "os", "sys", "warnings", "matplotlib"})


def calls_kit(module: cst.Module, *functions: str) -> bool:
    """Whether the module calls one of these functions of the kit already."""
    name, imported = kit_name(module)
    if not imported:
        return False
    wanted = {f"{name}.{function}" for function in functions}
    return any(dotted(call.func) in wanted for call in all_calls(module))
