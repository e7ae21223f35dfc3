"""Has a value a graph, as far as its function shows? Asked of single expressions, where the flow has lost sight of them.

Three things prove a graph: a backward goes through the value or through a sum of it, a network that the flow knows made it
with grad enabled, or it is a parameter of a network. What the function is given leaves it open.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from gpulint.rules.detect.kept.declared import by_annotation, registered
from gpulint.rules.detect.kept.definitions import Definition, Definitions, binds, within
from gpulint.rules.detect.kept.entries import entry
from gpulint.rules.detect.kept.results import Results
from gpulint.rules.detect.kept.sums import Sums
from gpulint.rules.detect.kept.traced import (
    NO_GRAPH_MADE,
    NUMBER,
    OPEN,
    PROVEN,
    REFUTED,
    UNKNOWN,
    Traced,
    joined,
    made_without,
    of_value,
)

from gpulint.analysis.code import ir
from gpulint.analysis.code.reading import asked_for_number
from gpulint.analysis.file.gradmode import of_call
from gpulint.analysis.file.lookup import called, parts_given, qualified
from gpulint.analysis.questions.backward.toward_backward import entry_feeds_backward
from gpulint.analysis.questions.backward.toward_input import trains_its_input
from gpulint.analysis.torch.keeping import BROUGHT, CUTS, DATA, LOSSLIKE, SETTINGS, SHOWN
from gpulint.analysis.torch.methods import NO_GRAPH
from gpulint.analysis.torch.names import HOST_ATTRS, OUTPUT_FIELDS, PAIRS, TENSOR_FIELDS, TO_HOST
from gpulint.analysis.torch.normalizing import NORMALIZES
from gpulint.analysis.values.values import Grad, Kind
from gpulint.answers import Verdict

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import Forward
    from gpulint.analysis.file.program import FileAnalysis

_DEEPEST = 16


class Graphs(Results):
    """What the values of one function carry."""

    def __init__(self, file: FileAnalysis, function: ir.Function) -> None:
        self.file = file
        self.function = function
        self._evidence = file.evidence[function]
        facts = file.facts.get(function)
        self._forwards: dict[int, Forward] = {
            id(forward.call): forward for forward in (facts.forwards if facts is not None else ())
        }
        self._params = {param.name: param for param in function.params}
        self._own = function.params[0].name if function.cls is not None and function.params else ""
        self._active: set[tuple[int, int]] = set()

    @cached_property
    def definitions(self) -> Definitions:
        """What the function's names stand for."""
        return Definitions(self.function)

    @cached_property
    def _sums(self) -> Sums:
        return Sums(self.file, self.function, self.definitions)

    @property
    def backwarded(self) -> frozenset[str]:
        """The names that a backward of the function goes through, as a whole or as a summand."""
        return self._sums.whole

    @property
    def parts(self) -> frozenset[str]:
        """The containers and tuples that such sums take their terms from."""
        return self._sums.parts

    @property
    def _is_forward(self) -> bool:
        """Whether the function is the forward of a module, which is given tensors."""
        info = self.file.class_of(self.function)
        return self.function.name == "forward" and info is not None and info.is_module

    @property
    def _normalizes(self) -> bool:
        """Whether it is the forward of a project's own version of one of torch's normalizing layers."""
        info = self.file.class_of(self.function)
        return self._is_forward and info is not None and not NORMALIZES.isdisjoint(info.base_names)

    @property
    def has_backward(self) -> bool:
        return bool(self.backwarded)

    # --- grad mode -----------------------------------------------------------------------------------------------

    def grad_at(self, stmt: ir.Stmt) -> Grad:
        """Whether grad is on at a statement, by the guards around it and those around the function."""
        for owner in self.definitions.owners(stmt):
            if isinstance(owner, ir.With):
                for expr, _ in owner.items:
                    path = expr.func.path if isinstance(expr, ir.Call) else expr.path
                    name = qualified(self.file, self.function, path)
                    mode = of_call(name, expr if isinstance(expr, ir.Call) else None)
                    if mode is None and CUTS.search((path or "").rpartition(".")[2]):
                        mode = Grad.UNKNOWN  # `self.no_grad_context()`
                    if mode is not None:
                        return mode
        if self._evidence.words & {"set_grad_enabled", "__enter__", "_set_grad_enabled"}:
            return Grad.UNKNOWN
        return self.file.grad_at_entry(self.function)

    # --- values --------------------------------------------------------------------------------------------------

    def of(self, expr: ir.Expr, stmt: ir.Stmt, depth: int = 0) -> Traced:
        """What an expression carries at a statement."""
        key = (id(expr), id(stmt))
        if depth > _DEEPEST or key in self._active:
            return UNKNOWN
        self._active.add(key)
        try:
            found = self._of(expr, stmt, depth + 1)
        finally:
            self._active.discard(key)
        return found

    def _of(self, expr: ir.Expr, stmt: ir.Stmt, depth: int) -> Traced:
        if isinstance(expr, (ir.Const, ir.Text, ir.LambdaExpr)):
            return NUMBER
        if isinstance(expr, ir.Call):
            return self._call(expr, stmt, depth)
        if isinstance(expr, ir.Op):
            return self._operation(expr, stmt, depth)
        if isinstance(expr, ir.Walrus):
            return self.of(expr.value, stmt, depth)
        if isinstance(expr, ir.Wrapper):
            return self.of(expr.value, stmt, depth) if expr.kind != "await" else UNKNOWN
        if isinstance(expr, ir.Seq):
            return joined(self.of(item, stmt, depth) for item in expr.items)
        if isinstance(expr, ir.DictDisplay):
            return joined(self.of(value, stmt, depth) for _, value in expr.pairs)
        if isinstance(expr, ir.Comp):
            return self._comprehension(expr, stmt, depth)
        if isinstance(expr, ir.Name):
            return self._named(expr.id, stmt, depth)
        if isinstance(expr, ir.Attr):
            return self._attribute(expr, stmt, depth)
        if isinstance(expr, ir.Sub):
            return self._item(expr, stmt, depth)
        return UNKNOWN

    def _operation(self, expr: ir.Op, stmt: ir.Stmt, depth: int) -> Traced:
        if expr.op in ("cmp", "not", "==", "!=", "in", "not in", "is", "is not", "<", ">"):
            return made_without("it is the answer to a question")
        if expr.op == "if":
            branches = [self.of(part, stmt, depth) for part in _where_no_number(expr)]
            found = joined(branches)
            if found.graph is PROVEN and any(branch.cut for branch in branches):
                return replace(found, graph=OPEN, why="a condition makes a number of it")
            return found
        parts = [self.of(part, stmt, depth) for part in expr.operands]
        if any(part.cut for part in parts) and not any(part.graph is PROVEN or part.given for part in parts):
            return next(part for part in parts if part.cut)  # `float(loss) * data.num_graphs`
        found = joined(parts)
        if expr.op in ("and", "or"):
            return found
        return self._computed(found, stmt)

    def _computed(self, found: Traced, stmt: ir.Stmt) -> Traced:
        """What is computed from something, where grad may be off."""
        if found.tensor is REFUTED or found.graph is REFUTED:
            return found
        mode = self.grad_at(stmt)
        if mode is Grad.DISABLED:
            return NO_GRAPH_MADE
        if mode is Grad.UNKNOWN and found.graph is PROVEN and not found.freed:
            return replace(found, graph=OPEN, why="whether grad is on where it is made is not shown")
        return found

    def _comprehension(self, expr: ir.Comp, stmt: ir.Stmt, depth: int) -> Traced:
        """`[l.item() for l in losses]`: its elements, whose names stand for what the clauses run through."""
        bound = {
            part.id: iterable
            for target, iterable, _ in expr.clauses
            for part in ir.walk(target)
            if isinstance(part, ir.Name)
        }
        element = expr.elements[-1]
        inner = element
        while isinstance(inner, ir.Call) and isinstance(inner.func, ir.Attr):
            if inner.method in NO_GRAPH or inner.method in TO_HOST:
                return Traced(REFUTED, REFUTED, "its parts are made numbers", cut=True)
            inner = inner.func.base
        if isinstance(inner, ir.Name) and inner.id in bound and not isinstance(element, ir.Op):
            return self.of(bound[inner.id], stmt, depth)
        if any(isinstance(part, ir.Name) and part.id in bound for part in ir.walk(element)):
            return (
                UNKNOWN
                if not _cuts(element)
                else Traced(REFUTED, REFUTED, "its parts are made numbers", cut=True)
            )
        return self.of(element, stmt, depth)

    # --- names ---------------------------------------------------------------------------------------------------

    def _named(self, name: str, stmt: ir.Stmt, depth: int) -> Traced:
        definitions, from_outside = self.definitions.reaching(name, stmt)
        found = [self._defined(name, definition, depth) for definition in definitions]
        if not found and from_outside:
            return self._from_outside(name, stmt)
        for definition, one in zip(definitions, found, strict=True):
            if (
                not definition.whole
                and one.cut
                and definition.value is not None
                and isinstance(definition.stmt, ir.Assign)
            ):
                return Traced(PROVEN, REFUTED, "its entries are detached, or made numbers", cut=True)
        whole = [one for definition, one in zip(definitions, found, strict=True) if definition.whole]
        if whole and all(one.graph is REFUTED for one in found):
            return found[0]
        if from_outside and name in self._params:
            found.append(self._from_outside(name, stmt))
        return self._after_backward(name, joined(found), stmt)

    def _after_backward(self, path: str, found: Traced, stmt: ir.Stmt) -> Traced:
        """A backward that goes through a name proves what it is."""
        if found.graph is REFUTED:
            return found
        if path in self.backwarded:
            scalar = found.scalar or path in self._evidence.scalars
            return Traced(PROVEN, PROVEN, f"a backward goes through `{path}`", freed=True, scalar=scalar)
        if path in self.parts:
            return Traced(PROVEN, PROVEN, f"a backward goes through what `{path}` holds", freed=True)
        known = self._followed(path)
        if known is None or found.graph is not OPEN or (found.freed and known.graph is OPEN):
            return found
        return self._computed(known, stmt)

    def _followed(self, path: str) -> Traced | None:
        """What the flow of values knows of a name that is bound once."""
        state = self.file.states.get(self.function)
        value = state.vars.get(path) if state is not None else None
        if value is None or sum(1 for s in ir.statements(self.function.body) if binds(s, path)) != 1:
            return None
        return of_value(value)

    def _defined(self, name: str, definition: Definition, depth: int) -> Traced:
        if definition.cut:
            return Traced(PROVEN, REFUTED, "it is detached", cut=True)
        if definition.value is None:
            return UNKNOWN
        if definition.element:
            return self._element(name, definition, depth)
        if definition.part and isinstance(definition.value, ir.Call):
            if definition.value.method in PAIRS:
                return UNKNOWN
            return self._part(name, definition, definition.value, depth)
        return self.of(definition.value, definition.stmt, depth)

    def _part(self, name: str, definition: Definition, call: ir.Call, depth: int) -> Traced:
        """`correct` of `loss, correct = step(batch)`: one of the values that a call gives, which need not be like the others."""
        known = self._followed(name)
        if known is not None:
            return known
        targets = definition.stmt.targets[0] if isinstance(definition.stmt, ir.Assign) else None
        if targets is not None and (cut := self._cut_inside(name, call, targets, depth)) is not None:
            return cut
        local = called(self.file, self.function, call)
        summary = self.file.summaries.get(local) if local is not None else None
        if summary is None or summary.returns is None or summary.returns.kind is not Kind.CONTAINER:
            return self._one_of_several(name, targets, self.of(call, definition.stmt, depth))
        items = summary.returns.items
        if items is None or not isinstance(targets, ir.Seq) or len(targets.items) != len(items):
            return UNKNOWN
        at = next((k for k, item in enumerate(targets.items) if within(item, name)), None)
        if at is None or local is None:
            return UNKNOWN
        found = of_value(items[at])
        return found if found is not None else self._of_given(items[at], call, local, definition.stmt, depth)

    def _one_of_several(self, name: str, targets: ir.Expr | None, found: Traced) -> Traced:
        """What stands behind the first of what a network gives may be a count as well as a tensor."""
        first = not isinstance(targets, ir.Seq) or within(targets.items[0], name)
        if first or found.graph is not PROVEN or LOSSLIKE.search(name):
            return found
        return replace(
            found, graph=OPEN, why=f"whether `{name}`, one of what the network gives, has a graph is not seen"
        )

    def _cut_inside(self, name: str, call: ir.Call, targets: ir.Expr, depth: int) -> Traced | None:
        """Whether the function that gives it has cut it off, or made a number of it, wherever it returns."""
        given = parts_given(self.function, call, targets, name)
        if not given or depth > _DEEPEST:
            return None
        found = [Graphs(home.home, home).of(part, stmt, depth + 1) for home, stmt, part in given]
        return found[0] if all(one.graph is REFUTED and one.cut for one in found) else None

    def _element(self, name: str, definition: Definition, depth: int) -> Traced:
        """What a loop takes out of something: the index of `enumerate` and the key of `items()` are numbers and texts."""
        target = definition.stmt.target  # type: ignore[attr-defined]
        value = definition.value
        while isinstance(value, ir.Call) and value.method in ("enumerate", "tqdm", "zip", "items", "values"):
            items = target.items if isinstance(target, ir.Seq) else ()
            if value.method in ("enumerate", "items") and len(items) == 2:
                if within(items[0], name):
                    return NUMBER
                target = items[1]
            if value.method == "zip" and len(items) == len(value.args):
                chosen = [arg for item, arg in zip(items, value.args, strict=True) if within(item, name)]
                value = chosen[0] if chosen else None
                target = next((item for item in items if within(item, name)), target)
                continue
            if value.method in ("items", "values"):
                value = value.func.base if isinstance(value.func, ir.Attr) else None
            else:
                value = value.args[0] if value.args else None
        if isinstance(value, ir.Call) and value.method in ("parameters", "named_parameters"):
            is_key = value.method == "named_parameters" and not (
                isinstance(target, ir.Seq) and within(target.items[-1], name)
            )
            return NUMBER if is_key else Traced(PROVEN, PROVEN, f"`{name}` is a parameter of a network")
        if value is None or (isinstance(value, ir.Call) and value.method == "range"):
            return NUMBER if value is not None else UNKNOWN
        if definition.value is value and self._is_keyed(value):
            return NUMBER  # `for name in report`
        found = self.of(value, definition.stmt, depth)
        source = found.given or (isinstance(value, ir.Call) and found.tensor is OPEN and value.method)
        if source and found.graph is OPEN and not LOSSLIKE.search(source):
            return Traced(OPEN, REFUTED, f"`{name}` comes out of `{source}`, as data does")
        return found

    def _is_keyed(self, value: ir.Expr) -> bool:
        """Whether the function takes entries out of something by name: what a loop takes out of it are the names."""
        return value.path is not None and any(
            isinstance(part, ir.Sub)
            and part.base.path == value.path
            and isinstance(part.index, ir.Const)
            and isinstance(part.index.value, str)
            for statement in ir.statements(self.function.body)
            for part in ir.own_parts(statement)
        )

    def _from_outside(self, name: str, stmt: ir.Stmt) -> Traced:
        """A parameter, or a name of the file."""
        param = self._params.get(name)
        if param is None or name == self._own:
            return self._after_backward(name, UNKNOWN, stmt)
        tensor = by_annotation(param)
        if self._is_forward and param is self.function.params[1] and not DATA.search(name):
            return self._input(name, tensor, stmt)
        if tensor is REFUTED or (tensor is OPEN and BROUGHT.search(name)):
            return Traced(REFUTED, REFUTED, f"`{name}` is no tensor, by its annotation or its name")
        if BROUGHT.search(name) and not (tensor is PROVEN and SHOWN.search(name)):
            return Traced(tensor, REFUTED, f"`{name}` is what a batch brings, by its name")
        if tensor is OPEN and self._is_forward:
            tensor = PROVEN
        why = f"whether `{name}` has a graph is up to the caller"
        return self._after_backward(name, Traced(tensor, OPEN, why, given=name), stmt)

    def _input(self, name: str, tensor: Verdict, stmt: ir.Stmt) -> Traced:
        """What a module's forward is given first: by the layers before it, or by a batch."""
        if self._normalizes:
            why = f"a layer that normalizes is given `{name}` by the layers before it"
            return self._after_backward(name, self._computed(Traced(PROVEN, PROVEN, why), stmt), stmt)
        if tensor is REFUTED:
            return Traced(REFUTED, REFUTED, f"`{name}` is no tensor, by its annotation")
        if trains_its_input(self.function, name):
            why = f"`{name}` is set against what is detached, which only trains what has made it"
            return self._after_backward(name, self._computed(Traced(PROVEN, PROVEN, why), stmt), stmt)
        why = f"whether `{name}` has a graph is up to the caller"
        return self._after_backward(name, Traced(PROVEN, OPEN, why, given=name), stmt)

    def _attribute(self, expr: ir.Attr, stmt: ir.Stmt, depth: int) -> Traced:
        if expr.attr in HOST_ATTRS:
            return NUMBER
        if expr.attr in ("data", "grad"):
            return Traced(PROVEN, REFUTED, f"`.{expr.attr}` has no graph", cut=True)
        if SETTINGS.search(expr.path or ""):
            return NUMBER
        if (
            expr.path is not None
            and isinstance(expr.base, ir.Name)
            and expr.base.id == self._own
            and self._own
        ):
            return self._own_attribute(expr, stmt, depth)
        if expr.path is not None and expr.path in self.backwarded:
            return self._after_backward(expr.path, UNKNOWN, stmt)
        found = self.of(expr.base, stmt, depth)
        if found.graph is not PROVEN:
            return replace(UNKNOWN, given=found.given)
        whole = expr.attr in TENSOR_FIELDS or expr.attr in OUTPUT_FIELDS
        return found if whole else self._entry(expr, found)

    def _own_attribute(self, expr: ir.Attr, stmt: ir.Stmt, depth: int) -> Traced:
        """`self.x`: what this function has put there, or what the class is known to keep there."""
        path = expr.path or ""
        definitions, from_outside = self.definitions.reaching(path, stmt)
        found = [self._defined(path, definition, depth) for definition in definitions]
        if found and not from_outside:
            return self._after_backward(path, joined(found), stmt)
        info = self.file.class_of(self.function)
        if info is not None:
            layer = any(base.startswith("torch.nn.") and base.count(".") == 2 for base in info.base_names)
            if expr.attr in ("weight", "bias") and layer and "torch.nn.Module" not in info.base_names:
                return Traced(PROVEN, PROVEN, f"`{path}` is a parameter of the network")
            if expr.attr in registered(info.cls, "register_buffer"):
                return made_without(f"`{path}` is a buffer")
            if expr.attr in registered(info.cls, "Parameter"):
                return Traced(PROVEN, PROVEN, f"`{path}` is a parameter of the network")
        return self._after_backward(path, joined([*found, UNKNOWN]), stmt)

    def _item(self, expr: ir.Sub, stmt: ir.Stmt, depth: int) -> Traced:
        if expr.path is not None:
            definitions, _ = self.definitions.reaching(expr.path, stmt)
            if definitions:
                found = joined(self._defined(expr.path, definition, depth) for definition in definitions)
                return self._after_backward(expr.path, found, stmt)
            if expr.path in self.backwarded:
                return self._after_backward(expr.path, UNKNOWN, stmt)
        found = self.of(expr.base, stmt, depth)
        if found.graph is PROVEN and expr.base.path in self.parts:
            given = entry(
                self.function,
                self.definitions,
                self.backwarded,
                expr,
                stmt,
                lambda other, one, at: Graphs(other.home, other).of(one, at, depth),
            )
            return given if given is not None else self._other_entry(expr, found)
        if found.graph is PROVEN and isinstance(expr.index, ir.Const):
            if isinstance(expr.index.value, str):
                return self._entry(expr, found)
            if expr.base.path in self.backwarded:
                return Traced(OPEN, OPEN, "what else it holds is not shown")
        return found

    def _entry(self, expr: ir.Attr | ir.Sub, found: Traced) -> Traced:
        """An entry or a field of what a network gives: a mask that it has cut off, or a count, as well as what is trained,
        unless a backward goes through it, or somebody cuts it off elsewhere."""
        path = expr.path
        if (
            path is None
            or self._is_cut_elsewhere(path)
            or entry_feeds_backward(self.file, self.function, path)
        ):
            return found
        why = f"whether `{path}`, one of what the network gives, has a graph is not seen"
        return replace(found, tensor=OPEN, graph=OPEN, why=why, scalar=False)

    def _is_cut_elsewhere(self, path: str) -> bool:
        """`out.mask.detach()`: who cuts it off there knows of a graph."""
        return any(
            call.method in ("detach", "detach_")
            and isinstance(call.func, ir.Attr)
            and call.func.base.path == path
            for _, call in ir.calls(self.function.body)
        )

    @staticmethod
    def _other_entry(expr: ir.Sub, found: Traced) -> Traced:
        """One of several of which a backward takes some: a loss like those, or a count."""
        if not isinstance(expr.index, ir.Const):
            return found
        key = expr.index.value
        alike = LOSSLIKE.search(key) if isinstance(key, str) else "losses" in (expr.base.path or "")
        if alike:
            return replace(found, graph=OPEN, why="a backward goes through others of its kind", freed=True)
        return Traced(OPEN, OPEN, "a backward goes through others beside it")


def _where_no_number(expr: ir.Op) -> tuple[ir.Expr, ...]:
    """The branches of `x.item() if type(x) != float else x`, without the one where x is a number."""
    test, then, otherwise = expr.operands
    asked = asked_for_number(test) if isinstance(test, ir.Op) else None
    if asked is None or not isinstance(test, ir.Op):
        return then, otherwise
    is_number = then if test.op in ("is", "==") else otherwise
    return (otherwise if is_number is then else then,) if is_number.path == asked else (then, otherwise)


def _cuts(expr: ir.Expr) -> bool:
    return any(
        isinstance(part, ir.Call) and part.method in NO_GRAPH | TO_HOST | {"float", "int"}
        for part in ir.walk(expr)
    )


class Tracing:
    """The `Graphs` of a file's functions, each made once; asked through `facts.ask`."""

    def __init__(self, file: FileAnalysis) -> None:
        self.file = file
        self._made: dict[ir.Function, Graphs] = {}

    def of(self, function: ir.Function) -> Graphs:
        home: FileAnalysis = function.home
        if function not in self._made:
            self._made[function] = Graphs(home, function)
        return self._made[function]
