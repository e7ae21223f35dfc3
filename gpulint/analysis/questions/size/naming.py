"""What names stand for where constructors are followed: constants, classes, settings and the attributes of what was built."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.questions.size.built import UNKNOWN, Built, Closure, Named, Partial, Scope, Thing
from gpulint.analysis.questions.size.defaults import setting
from gpulint.analysis.torch.keeping import SETTINGS
from gpulint.analysis.values.arguments import is_static
from gpulint.analysis.values.values import Kind

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

DEPTH = 16  # calls in calls
_SIMPLE = (ir.Const, ir.Op, ir.Seq, ir.Name, ir.Attr, ir.Sub, ir.DictDisplay, ir.LambdaExpr, ir.Call)


class Naming(ABC):
    """Says what a name or a dotted path comes to."""

    def __init__(self) -> None:
        self._depth = 0
        self._constants: dict[int, object] = {}

    @abstractmethod
    def value(self, expr: ir.Expr, scope: Scope) -> object:
        """What an expression comes to."""

    def _place(self, expr: ir.Name | ir.Attr, scope: Scope) -> object:
        path = expr.path
        if path is None:
            return (
                self._part(self.value(expr.base, scope), expr.attr) if isinstance(expr, ir.Attr) else UNKNOWN
            )
        parts = path.split(".")
        head, *rest = parts
        within: Scope | None = scope
        while within is not None and head not in within.names:
            within = within.outer
        if within is not None:
            found = within.names[head]
            params = within.function.params
            if within.info is not None and params and params[0].name == head:
                found, rest = self._own(within, rest)
        elif not rest:
            return self._bound_outside(scope.function, head)
        else:
            found = self._outside(scope.function, path)
            rest = [] if found is not UNKNOWN else rest
        for attr in rest:
            found = self._part(found, attr)
        if found is UNKNOWN and len(parts) > 1 and SETTINGS.search(".".join(parts[-2:])):
            return setting(scope.function.home, parts[-1])
        return found

    def _own(self, scope: Scope, rest: list[str]) -> tuple[object, list[str]]:
        """What an attribute of the object itself is, and what is asked of that."""
        for length in range(len(rest), 0, -1):
            written = ".".join(rest[:length])
            if written in scope.own:
                return scope.own[written], rest[length:]
        if rest and scope.info is not None:
            return self._of_class(scope.info, rest[0], scope.own), rest[1:]
        return UNKNOWN, rest

    def _part(self, value: object, attr: str) -> object:
        """What an attribute of a value is."""
        if isinstance(value, Named):
            return Named(f"{value.full}.{attr}")
        if isinstance(value, Built):
            return value.own[attr] if attr in value.own else self.piece(value, attr)
        if isinstance(value, Thing):
            return value.own[attr] if attr in value.own else self._of_class(value.info, attr, value.own)
        if isinstance(value, dict):
            return value.get(attr, UNKNOWN)
        return self._of_class(value, attr) if isinstance(value, ClassInfo) else UNKNOWN

    def piece(self, whole: Built, attr: str) -> object:
        """A part of what is counted as a whole."""
        return Built()

    def _of_class(self, info: ClassInfo, attr: str, own: dict[str, object] | None = None) -> object:
        """What stands in a class's body: `expansion = 4`, or a method."""
        for one in info.lineage():
            home: FileAnalysis = one.home
            for statement in one.cls.body:
                if (
                    isinstance(statement, ir.Assign)
                    and statement.value is not None
                    and any(target.path == attr for target in statement.targets)
                ):
                    return self._constant(statement.value, home.module.body)
        method = self.method(info, attr)
        if method is None:
            return UNKNOWN
        closure = Closure(method, Scope(method, {}, {} if own is None else own, info))
        return closure if is_static(method) else Partial(closure, (UNKNOWN,), {})

    def bases(self, info: ClassInfo) -> list[object]:
        """The bases that a class names: classes of the project, and those of libraries."""
        found: list[object] = []
        home: FileAnalysis | None = info.home
        for base in info.cls.bases:
            linked = next((one for one in info.bases if one.cls.name == base.path), None)
            if linked is not None:
                found.append(linked)
            elif home is not None and base.path is not None:
                found.append(self._outside(home.module.body, base.path))
        return found

    def method(self, info: ClassInfo, name: str) -> ir.Function | None:
        """What a method's name runs, in the class or the nearest of its bases that has it."""
        return next((one.cls.methods[name] for one in info.lineage() if name in one.cls.methods), None)

    def _constant(self, expr: ir.Expr, function: ir.Function) -> object:
        if not isinstance(expr, _SIMPLE) or self._depth >= DEPTH:
            return UNKNOWN
        if id(expr) not in self._constants:  # what is made there is counted once
            self._depth += 1
            self._constants[id(expr)] = UNKNOWN
            try:
                value = self.value(expr, Scope(function, {}))
                # What is empty where it is bound is filled later.
                self._constants[id(expr)] = (
                    UNKNOWN if isinstance(value, (list, dict)) and not value else value
                )
            finally:
                self._depth -= 1
        return self._constants[id(expr)]

    def _outside(self, function: ir.Function, path: str) -> object:
        """What a path is that begins with an import, or with a name around the function."""
        home: FileAnalysis = function.home
        head, *rest = path.split(".")
        full = home.names.qualify(path)
        if full is None:
            found = self._bound_outside(function, head)
            for attr in rest:
                found = self._part(found, attr)
            return found
        for length in range(len(rest), -1, -1):
            known = full if length == len(rest) else ".".join(full.split(".")[: length - len(rest)])
            found = self._of_project(home, known)
            if found is not UNKNOWN:
                for attr in rest[length:]:
                    found = self._part(found, attr)
                return found
        return Named(full)

    def _of_project(self, home: FileAnalysis, full: str) -> object:
        """A class, a function or a constant of another file."""
        found = home.imported_value(full)
        if found is not None and found.kind is Kind.CLASS:
            return found.ref
        if found is not None and found.kind is Kind.FUNCTION:
            function: ir.Function = found.ref
            if function.cls is None and function.parent is function.home.module.body:
                return Closure(function, Scope(function, {}))
        bound = home.project.bound(home.filename, full) if home.project is not None else None
        return self._constant(bound[1], bound[0].module.body) if bound is not None else UNKNOWN

    def _bound_outside(self, function: ir.Function, name: str) -> object:
        """What a name is bound to, once, in the function or around it."""
        home: FileAnalysis = function.home
        scope: ir.Function | None = function
        while scope is not None:
            inner = next(
                (one for one in home.module.functions if one.name == name and one.parent is scope), None
            )
            if inner is not None and inner.cls is None:
                return Closure(inner, Scope(scope, {}))
            if name in home.evidence[scope].assigned or any(param.name == name for param in scope.params):
                values = [
                    s.value
                    for s in ir.statements(scope.body)
                    if isinstance(s, ir.Assign) and any(target.path == name for target in s.targets)
                ]
                (only,) = values if len(values) == 1 else (None,)
                return self._constant(only, scope) if only is not None else UNKNOWN
            scope = scope.parent
        if name in home.classes:
            return home.classes[name]
        full = home.names.qualify(name)
        if full is not None:
            own = self._of_project(home, full)
            return own if own is not UNKNOWN else Named(full)
        return self._through_star(home, name)

    def _through_star(self, home: FileAnalysis, name: str) -> object:
        for local, module in home.module.imports.items():
            if local.startswith("*"):
                own = self._of_project(
                    home, f"{module}{name}" if module.endswith(".") else f"{module}.{name}"
                )
                if own is not UNKNOWN:
                    return own
        return UNKNOWN
