"""Has a value a graph, as far as its function shows? Asked of single expressions, where the flow has lost sight of them.

Three things prove a graph: a backward goes through the value or through a sum of it, a network that the flow knows made it
with grad enabled, or it is a parameter of a network. What the function is given leaves it open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpulint.rules.detect.kept.definitions import Definition, Definitions

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import additive_terms, unscaled
from gpulint.analysis.file.gradmode import of_call
from gpulint.analysis.file.lookup import called, qualified
from gpulint.analysis.torch.frameworks import GRAPH_KEEPING, HOST_LIBRARIES
from gpulint.analysis.torch.keeping import BROUGHT, CUTS, LOSSLIKE, SETTINGS, SHOWN
from gpulint.analysis.torch.methods import GIVES_ITSELF, NO_GRAPH
from gpulint.analysis.torch.names import (
    HOST_ATTRS,
    JOINS,
    KEEPS_GRAPH,
    PAIRS,
    REDUCTIONS,
    TO_DEVICE,
    TO_HOST,
    is_loss_function,
)
from gpulint.analysis.values.values import MAYBE, MIXED, UNSURE_GRAD, Grad, Kind, ParamToken, Val, held_parts
from gpulint.answers import Verdict

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import Forward
    from gpulint.analysis.file.program import FileAnalysis

PROVEN, OPEN, REFUTED = Verdict.PROVEN, Verdict.OPEN, Verdict.REFUTED

_DEEPEST = 9
# Only tensors have these methods: what they are called on is one.
_OF_TENSORS = frozenset(
    "cpu cuda to view contiguous unsqueeze squeeze permute double half bfloat16 type_as expand backward requires_grad_ "
    "log_softmax softmax sigmoid masked_fill index_select cumsum new_zeros clamp pow sqrt exp norm flatten chunk unbind "
    "transpose logsumexp argmax float detach".split()
)
_BUILT_IN = frozenset("sum max min abs list tuple dict sorted reversed enumerate zip next iter set".split())
_CARRIERS = frozenset("values items get copy pop mean sum to_tuple keys".split())


@dataclass(frozen=True, slots=True)
class Traced:
    """What is known of a value: is it a tensor, or made of tensors; has it a graph, and why. `freed`: a backward in the
    function goes through it. `given`: the parameter that decides about it. `scalar`: backward was called on it, or a loss
    function or a reduction made it."""

    tensor: Verdict
    graph: Verdict
    why: str
    freed: bool = False
    given: str = ""
    scalar: bool = False
    cut: bool = False  # it was a tensor with a graph, and somebody took care that it is none any more


NUMBER = Traced(REFUTED, REFUTED, "it is a number, or text")
UNKNOWN = Traced(OPEN, OPEN, "what makes it is not seen")
NO_GRAPH_MADE = Traced(PROVEN, REFUTED, "grad is off where it is made")


def _made_without(why: str) -> Traced:
    return Traced(PROVEN, REFUTED, why)


class Graphs:
    """What the values of one function carry."""

    def __init__(self, file: FileAnalysis, function: ir.Function) -> None:
        self.file = file
        self.function = function
        self.definitions = Definitions(function)
        self._evidence = file.evidence[function]
        facts = file.facts.get(function)
        self._forwards: dict[int, Forward] = {
            id(forward.call): forward for forward in (facts.forwards if facts is not None else ())
        }
        self._params = {param.name: param for param in function.params}
        self._own = function.params[0].name if function.cls is not None and function.params else ""
        self._active: set[tuple[int, int]] = set()
        self.backwarded, self.parts = self._went_backward()

    # --- backward ------------------------------------------------------------------------------------------------

    def _went_backward(self) -> tuple[frozenset[str], frozenset[str]]:
        """The names that a backward of this function goes through as a whole or as a summand; and the containers and
        tuples that such a sum takes its terms from."""
        if not self._evidence.backward and not self._by_own_method():
            return frozenset(), frozenset()
        whole = set(self._evidence.backward | self._evidence.terms | self._by_own_method())
        parts: set[str] = set()
        wanted: list[tuple[str, ir.Stmt]] = []
        for statement in ir.statements(self.function.body):
            for call in ir.own_calls(statement):
                if "backward" in call.method:
                    terms: set[str] = set()
                    for given in (
                        *call.args[:1],
                        *((call.func.base,) if isinstance(call.func, ir.Attr) else ()),
                    ):
                        _summed(given, terms, parts)
                    whole |= {term for term in terms if call.method == "backward" and not call.args}
                    wanted += [(path, statement) for path in terms]
        seen: set[tuple[str, int]] = set()
        while wanted:
            path, statement = wanted.pop()
            if (path, id(statement)) not in seen and len(seen) < 60:
                seen.add((path, id(statement)))
                for term, at in self._terms(path, statement, parts):
                    whole.add(term)
                    wanted.append((term, at))
        return frozenset(whole), frozenset(parts)

    def _by_own_method(self) -> frozenset[str]:
        """`self.loss`, where the function calls a method of its object that goes backward through it."""
        info = self.file.class_of(self.function) if self.function.cls is not None else None
        if info is None or not info.backward:
            return frozenset()
        for name in self._evidence.called:
            method = info.method(name)
            if method is not None and method is not self.function:
                known = method.home.evidence[method].backward
                if any(path.startswith("self.") for path in known):
                    return frozenset(path for path in known if path.startswith("self."))
        return frozenset()

    def _terms(self, path: str, stmt: ir.Stmt, parts: set[str]) -> Iterator[tuple[str, ir.Stmt]]:
        """The summands of what a name has at a statement, where it is bound in one way only."""
        definitions, _ = self.definitions.reaching(path, stmt)
        if sum(definition.whole for definition in definitions) > 1:
            return
        for definition in definitions:
            if definition.element:
                iterable = definition.value
                if isinstance(iterable, ir.Call) and iterable.method in ("values", "items"):
                    iterable = iterable.func.base if isinstance(iterable.func, ir.Attr) else None
                if iterable is not None and iterable.path is not None:
                    parts.add(iterable.path)
            elif isinstance(definition.stmt, ir.AugAssign) and definition.stmt.op not in ("+", "-"):
                continue
            elif definition.value is not None and not definition.part:
                terms: set[str] = set()
                _summed(definition.value, terms, parts)
                yield from ((term, definition.stmt) for term in terms if term != path)

    @property
    def _is_forward(self) -> bool:
        """Whether the function is the forward of a module, which is given tensors."""
        info = self.file.class_of(self.function)
        return self.function.name == "forward" and info is not None and info.is_module

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
            return _made_without("it is the answer to a question")
        if expr.op == "if":
            return joined(self.of(part, stmt, depth) for part in expr.operands[1:])
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
        if known is not None and found.graph is OPEN:
            return self._computed(known, stmt)
        return found

    def _followed(self, path: str) -> Traced | None:
        """What the flow of values knows of a name that is bound once."""
        state = self.file.states.get(self.function)
        value = state.vars.get(path) if state is not None else None
        if value is None or sum(1 for s in ir.statements(self.function.body) if _binds(s, path)) != 1:
            return None
        return _of_value(value)

    def _defined(self, name: str, definition: Definition, depth: int) -> Traced:
        if definition.cut:
            return Traced(PROVEN, REFUTED, "it is detached", cut=True)
        if definition.value is None:
            return UNKNOWN
        if definition.element:
            return self._element(name, definition, depth)
        if definition.part and isinstance(definition.value, ir.Call) and definition.value.method in PAIRS:
            return UNKNOWN
        return self.of(definition.value, definition.stmt, depth)

    def _element(self, name: str, definition: Definition, depth: int) -> Traced:
        """What a loop takes out of something: the index of `enumerate` and the key of `items()` are numbers and texts."""
        target = definition.stmt.target  # type: ignore[attr-defined]
        value = definition.value
        while isinstance(value, ir.Call) and value.method in ("enumerate", "tqdm", "zip", "items", "values"):
            items = target.items if isinstance(target, ir.Seq) else ()
            if value.method in ("enumerate", "items") and len(items) == 2:
                if _within(items[0], name):
                    return NUMBER
                target = items[1]
            if value.method == "zip" and len(items) == len(value.args):
                chosen = [arg for item, arg in zip(items, value.args, strict=True) if _within(item, name)]
                value = chosen[0] if chosen else None
                target = next((item for item in items if _within(item, name)), target)
                continue
            if value.method in ("items", "values"):
                value = value.func.base if isinstance(value.func, ir.Attr) else None
            else:
                value = value.args[0] if value.args else None
        if isinstance(value, ir.Call) and value.method in ("parameters", "named_parameters"):
            is_key = value.method == "named_parameters" and not (
                isinstance(target, ir.Seq) and _within(target.items[-1], name)
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
            for root in statement.expressions()
            for part in ir.walk(root)
        )

    def _from_outside(self, name: str, stmt: ir.Stmt) -> Traced:
        """A parameter, or a name of the file."""
        param = self._params.get(name)
        if param is None or name == self._own:
            return self._after_backward(name, UNKNOWN, stmt)
        tensor = _by_annotation(param)
        if tensor is REFUTED or (tensor is OPEN and BROUGHT.search(name)):
            return Traced(REFUTED, REFUTED, f"`{name}` is no tensor, by its annotation or its name")
        if BROUGHT.search(name) and not (tensor is PROVEN and SHOWN.search(name)):
            return Traced(tensor, REFUTED, f"`{name}` is what a batch brings, by its name")
        if tensor is OPEN and self._is_forward:
            tensor = PROVEN
        why = f"whether `{name}` has a graph is up to the caller"
        return self._after_backward(name, Traced(tensor, OPEN, why, given=name), stmt)

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
        return found if found.graph is PROVEN else replace(UNKNOWN, given=found.given)

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
                return _made_without(f"`{path}` is a buffer")
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
            return self._other_entry(expr, found)
        named = isinstance(expr.index, ir.Const) and isinstance(expr.index.value, str)
        if (
            found.graph is PROVEN
            and (named or expr.base.path in self.backwarded)
            and isinstance(expr.index, ir.Const)
        ):
            return Traced(OPEN, OPEN, "what else it holds is not shown")
        return found

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

    # --- calls ---------------------------------------------------------------------------------------------------

    def _call(self, call: ir.Call, stmt: ir.Stmt, depth: int) -> Traced:
        method = call.method
        name = qualified(self.file, self.function, call.func.path) or ""
        if name.startswith("torch") or name in GRAPH_KEEPING:
            return self._of_torch(call, name, stmt, depth)
        if name.partition(".")[0] in HOST_LIBRARIES:
            return replace(NUMBER, cut=True)
        if call.func.path == "map" and len(call.args) == 2:
            numbers = CUTS.search(call.args[0].path or "") is not None
            return replace(NUMBER, cut=True) if numbers else UNKNOWN
        if isinstance(call.func, ir.Name) and method in _BUILT_IN and not name:
            return self._computed(joined(self.of(arg, stmt, depth) for arg in call.args), stmt)
        if id(call) in self._forwards:
            return self._of_forward(self._forwards[id(call)])
        local = called(self.file, self.function, call)
        if local is not None:
            return self._of_local(call, local, stmt, depth)
        if isinstance(call.func, ir.Attr):
            return self._of_method(call, call.func, stmt, depth)
        if CUTS.search(method):
            return replace(NUMBER, cut=True)
        if method[:1].isupper():
            return _made_without("it is made of numbers") if method.endswith("Tensor") else UNKNOWN
        return self._of_stranger(call, stmt)

    def _of_torch(self, call: ir.Call, name: str, stmt: ir.Stmt, depth: int) -> Traced:
        last = name.rpartition(".")[2]
        if name in GRAPH_KEEPING and call.args:
            return self.of(call.args[0], stmt, depth)
        if last in TO_HOST:
            return replace(NUMBER, cut=True)
        if last in TO_DEVICE or last.endswith("Tensor"):
            return _made_without(f"`{last}` makes no graph")
        if (
            last in JOINS
            or last in KEEPS_GRAPH
            or last in REDUCTIONS
            or last in PAIRS
            or is_loss_function(name)
        ):
            given = [self.of(arg, stmt, depth) for arg in call.args if not isinstance(arg, ir.Const)]
            found = joined(given)
            if given and found.tensor is not REFUTED:
                scalar = is_loss_function(name) or (last in REDUCTIONS and len(call.args) == 1)
                return self._computed(replace(found, tensor=PROVEN, scalar=scalar), stmt)
            return found if given else UNKNOWN
        return UNKNOWN

    def _of_forward(self, forward: Forward) -> Traced:
        path = forward.path or "a network"
        if forward.grad is Grad.DISABLED:
            return NO_GRAPH_MADE
        sure = forward.grad is Grad.ENABLED and forward.proven and not forward.by_role
        why = (
            f"`{path}` makes it with grad enabled"
            if sure
            else f"whether `{path}` makes it with a graph is not certain"
        )
        return Traced(PROVEN, PROVEN if sure else OPEN, why, freed=forward.freed)

    def _of_local(self, call: ir.Call, local: ir.Function, stmt: ir.Stmt, depth: int) -> Traced:
        summary = self.file.summaries.get(local)
        if summary is not None and summary.returns is not None and summary.returns.kind is Kind.SYMBOL:
            names = {token.name for token in summary.returns.tokens if isinstance(token, ParamToken)}
            params = local.params[1:] if local.cls is not None else local.params
            given = [
                call.argument(place, param.name) for place, param in enumerate(params) if param.name in names
            ]
            carried = [self.of(one, stmt, depth) for one in given if one is not None]
            return self._computed(joined(carried), stmt) if carried else UNKNOWN
        found = _of_value(summary.returns) if summary is not None and summary.returns is not None else None
        if found is None and self.file.switches_grad_off(local):
            return NO_GRAPH_MADE
        return self._computed(found, stmt) if found is not None else self._of_stranger(call, stmt)

    def _of_method(self, call: ir.Call, func: ir.Attr, stmt: ir.Stmt, depth: int) -> Traced:
        method = func.attr
        if method in NO_GRAPH or method in TO_HOST:
            return Traced(REFUTED, REFUTED, f"`.{method}()` leaves no graph", cut=True)
        if (
            method in TO_DEVICE or method in ("zero_", "fill_", "normal_", "uniform_")
        ) and method not in KEEPS_GRAPH:
            return _made_without(f"`.{method}()` makes no graph")
        if self._is_network(func, method):
            given = [self.of(arg, stmt, depth) for arg in call.args]
            if given and all(one.cut for one in given):
                return Traced(
                    PROVEN, OPEN, f"whether `{call.method}` makes a graph of what is detached is not shown"
                )
            return self._of_stranger(call, stmt, network=True)
        if method in KEEPS_GRAPH or method in REDUCTIONS or method in _CARRIERS or method in PAIRS:
            found = self.of(func.base, stmt, depth)
            if method in _OF_TENSORS and found.tensor is OPEN:
                found = replace(found, tensor=PROVEN)
            if method in REDUCTIONS and not call.args:
                found = replace(found, scalar=True)
            if method not in GIVES_ITSELF | _CARRIERS | {"clone"}:
                found = self._computed(found, stmt)
            return found
        if CUTS.search(method):
            return replace(NUMBER, cut=True)
        return self._of_stranger(call, stmt)

    def _is_network(self, func: ir.Attr, method: str) -> bool:
        """Whether a call is one of a module that the class or the function treats as one."""
        if func.path is not None and self.file.treated_as_module(self.function, func.path):
            return True
        info = self.file.class_of(self.function)
        own = isinstance(func.base, ir.Name) and func.base.id == self._own
        return own and info is not None and info.attr(method).kind is Kind.MODULE

    def _of_stranger(self, call: ir.Call, stmt: ir.Stmt, network: bool = False) -> Traced:
        """The result of code that is not seen."""
        mode = self.grad_at(stmt)
        if mode is Grad.DISABLED:
            return NO_GRAPH_MADE  # who switches grad off around a call does so for its tensors
        shown = call.func.path or call.method
        if network:
            sure = mode is Grad.ENABLED
            why = (
                f"`{shown}` is a network, run with grad enabled"
                if sure
                else f"`{shown}` may run with grad off"
            )
            return Traced(PROVEN, PROVEN if sure else OPEN, why)
        if LOSSLIKE.search(call.method):
            return Traced(OPEN, OPEN, f"`{shown}` makes a loss, by its name", scalar=True)
        return Traced(OPEN, OPEN, f"what `{shown}` gives is not seen")


# --- pieces --------------------------------------------------------------------------------------------------------


def joined(found: Iterable[Traced]) -> Traced:
    """What is made of several: a graph, where one has it."""
    parts = list(found)
    if not parts:
        return NUMBER
    best = max(parts, key=_weight)
    return replace(best, scalar=all(part.scalar or part.tensor is REFUTED for part in parts) and best.scalar)


def _weight(one: Traced) -> tuple[int, int]:
    order = {REFUTED: 0, OPEN: 1, PROVEN: 2}
    return order[one.graph], order[one.tensor]


def _of_value(value: Val) -> Traced | None:
    """What the flow of values knows, in these terms; None where it knows nothing."""
    if value.kind is Kind.CONTAINER:
        inside = [found for part in held_parts(value) if (found := _of_value(part)) is not None]
        return joined(inside) if inside else None
    if value.kind in (Kind.HOST, Kind.NUMBER):
        return replace(NUMBER, cut=value.kind is Kind.HOST)
    if value.kind is Kind.DEVICE:
        return _made_without("it has no graph")
    if value.kind is Kind.GRAPH:
        unsure = value.has(MAYBE) or value.has(MIXED) or value.has(UNSURE_GRAD)
        made = any(site.what in ("forward", "loss") for site in value.sites)
        if unsure or not made:
            return Traced(
                PROVEN if not value.has(MAYBE) else OPEN, OPEN, "not all that it may be has a graph"
            )
        return Traced(PROVEN, PROVEN, "a network or a loss makes it with grad enabled")
    return None


def _summed(value: ir.Expr, whole: set[str], parts: set[str]) -> None:
    """Note what a sum that goes backward is made of."""
    for term in additive_terms(value):
        term = unscaled(term)
        if term.path is not None:
            whole.add(term.path)
        elif isinstance(term, ir.Op) and term.op in ("if", "and", "or"):
            for branch in term.operands[term.op == "if" :]:
                _summed(branch, whole, parts)
        elif isinstance(term, ir.Call):
            _summed_by(term, whole, parts)
        if isinstance(term, ir.Sub) and term.base.path is not None:
            parts.add(term.base.path)


def _summed_by(call: ir.Call, whole: set[str], parts: set[str]) -> None:
    """`sum(losses)`, `torch.stack(losses).mean()`, `sum(losses.values())`, `sum(l for l in losses)`, `loss.mean()`."""
    if call.method in ("sum", "stack", "cat", "mean", "add", "fsum") and call.args:
        inner = call.args[0]
        if isinstance(inner, ir.Comp):
            inner = inner.clauses[0][1]
        if isinstance(inner, ir.Call) and inner.method in ("values", "items", "list") and not inner.args:
            inner = inner.func.base if isinstance(inner.func, ir.Attr) else inner
        if isinstance(inner, ir.Call) and inner.method == "list" and inner.args:
            inner = inner.args[0]
            if isinstance(inner, ir.Call) and isinstance(inner.func, ir.Attr) and inner.method == "values":
                inner = inner.func.base
        if inner.path is not None:
            parts.add(inner.path)
        elif isinstance(inner, ir.Seq):
            for item in inner.items:
                _summed(item, whole, parts)
        else:
            _summed(inner, whole, parts) if isinstance(inner, ir.Call) else None
    elif isinstance(call.func, ir.Attr) and call.method in REDUCTIONS | {
        "squeeze",
        "float",
        "to",
        "cuda",
        "view",
    }:
        _summed(call.func.base, whole, parts)


def _binds(statement: ir.Stmt, path: str) -> bool:
    if isinstance(statement, ir.Assign):
        return any(part.path == path for target in statement.targets for part in ir.walk(target))
    if isinstance(statement, ir.AugAssign):
        return statement.target.path == path
    return isinstance(statement, ir.For) and _within(statement.target, path)


def _within(target: ir.Expr, name: str) -> bool:
    return any(part.path == name for part in ir.walk(target))


def _cuts(expr: ir.Expr) -> bool:
    return any(
        isinstance(part, ir.Call) and part.method in NO_GRAPH | TO_HOST | {"float", "int"}
        for part in ir.walk(expr)
    )


_NUMERIC = frozenset("int float bool str Path dict Dict ndarray".split())


def _by_annotation(param: ir.Param) -> Verdict:
    """What a parameter is, by its annotation or its default."""
    if param.annotation is None:
        default = param.default
        counts = isinstance(default, ir.Const) and default.value is not None and default.value is not ...
        return REFUTED if counts else OPEN
    words = {
        (part.path or "").rpartition(".")[2]
        if not isinstance(part, ir.Const)
        else str(part.value).rpartition(".")[2].strip("]'\" ")
        for part in ir.walk(param.annotation)
    }
    if any(word.endswith("Tensor") or word == "TensorType" for word in words):
        return PROVEN
    return REFUTED if words & _NUMERIC and "Any" not in words else OPEN


def registered(cls: ir.Class, how: str) -> frozenset[str]:
    """The attributes of a class that are buffers (`register_buffer`) or parameters (`Parameter`)."""
    return frozenset(_registered(cls, how))


def _registered(cls: ir.Class, how: str) -> Iterator[str]:
    for method in cls.methods.values():
        for statement in ir.statements(method.body):
            for call in ir.own_calls(statement):
                if call.method != how:
                    continue
                name = call.argument(0, "name")
                if how.startswith("register") and isinstance(name, ir.Const) and isinstance(name.value, str):
                    yield name.value
                elif isinstance(statement, ir.Assign) and not _is_off(call.keyword("requires_grad")):
                    yield from (target.attr for target in statement.targets if isinstance(target, ir.Attr))


def _is_off(flag: ir.Expr | None) -> bool:
    return isinstance(flag, ir.Const) and flag.value is False


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
