"""What an expression is worth in the lattice, given the state: names, attributes, operators, displays."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file import lookup
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.file.frozen_classes import is_part_frozen
from gpulint.analysis.torch import frameworks
from gpulint.analysis.torch.names import HOST_ATTRS, OUTPUT_FIELDS, OUTPUT_TENSORS, PAIRS, TENSOR_FIELDS
from gpulint.analysis.values.constants import NO_CONSTANTS, Constants, truth
from gpulint.analysis.values.records import field, is_dict
from gpulint.analysis.values.state import State, merge
from gpulint.analysis.values.values import (
    DEVICE,
    EVAL,
    FRESH,
    FROZEN,
    HOST,
    LARGE,
    LOSS,
    MAYBE,
    NAMED,
    NUMBER,
    OPEN,
    OPTIMIZER,
    OUTPUT,
    SCALAR,
    UNKNOWN,
    UNSHOWN,
    UNSURE_GRAD,
    Grad,
    Kind,
    Val,
    container,
    detached,
    element,
    join,
    mixed,
    with_inner,
)

if TYPE_CHECKING:
    from gpulint.analysis.file.evidence import Evidence
    from gpulint.analysis.file.facts import FunctionFacts, Keep, Loop
    from gpulint.analysis.file.program import FileAnalysis
    from gpulint.analysis.file.summaries import Events, Summary
    from gpulint.analysis.values.arguments import Args
    from gpulint.analysis.values.values import Holder, Tokens

# What a callable is for, where the program names it so and hands it a model's output. A role, not a value: `criterion`
# applied to a graph gives a graph, while a value that is merely called `loss` proves nothing.
CRITERION_NAME = re.compile(
    r"(?:^|[._])(?:criterions?|criteria|criteri\w*|\w*loss_?(?:fn|func|function|f|module)|lossfn)(?:\[.*\])?$"
)

# The same for what runs a forward: `model(x)`, `self.net(x)`, `student_model(x)`.
MODEL_NAME = re.compile(
    r"(?:^|\.)(?!(?:make|build|create|get|load|init|prepare|setup|new|save|wrap|unwrap|compile|configure|clone|copy|export|train|fit|eval|test|run|is|update|call)_)(?:\w+_)?(?:model|net|network|net[DG])$"
)

# Names of parts of a model: enough where the argument is a tensor for certain.
PART_NAME = re.compile(
    r"(?:^|\.)(?:\w+_)?(?:encoder|decoder|generator|discriminator|backbone|classifier|extractor|teacher|student|actor|critic|unet|vae)$"
)


class Evaluator(ABC):
    """Follows values through expressions. `record` is off while a loop's fixpoint is sought."""

    if TYPE_CHECKING:
        # Given by the classes that build on this one: a call needs holds, a hold needs statements.
        summary: Summary
        facts: FunctionFacts
        events: Events
        guards: list[ir.Stmt]
        handlers_open: int

        def call(self, expr: ir.Call) -> Val: ...
        def arguments(self, call: ir.Call) -> Args: ...
        def value_call(self, expr: ir.Call, callee: Val, args: Args) -> Val: ...
        def function_call(
            self,
            expr: ir.Call,
            callee: Val,
            args: Args,
            owner: Val | None,
            owner_path: str | None,
            forward: bool = False,
        ) -> Val: ...
        def construct(self, expr: ir.Call, callee: Val, args: Args) -> Val: ...
        def carried(self, expr: ir.Call, args: Args, sites: Tokens) -> None: ...
        def unknown_call(self, expr: ir.Call, args: Args, base: Val = UNKNOWN) -> Val: ...
        def unknown_method(self, expr: ir.Call, func: ir.Attr, base: Val) -> Val: ...
        def bind(self, target: ir.Expr, value: Val, source: ir.Expr | None) -> None: ...
        def block(self, body: list[ir.Stmt]) -> None: ...
        def opaque(self, path: str, value: Val, flags: int) -> Val: ...
        def joined(self, expr: ir.Call, args: Args) -> None: ...
        def comprehended(self, target: ir.Expr, source: ir.Comp, value: Val) -> None: ...
        def store_attribute(self, path: str, value: Val) -> None: ...
        def held(
            self,
            expr: ir.Call | None,
            how: str,
            path: str,
            value: Val,
            leaves: tuple[ir.Expr, ...],
            in_container: bool,
            bounded: bool,
            keep: Keep | None = None,
        ) -> Holder | None: ...

    def __init__(self, file: FileAnalysis, function: ir.Function, evidence: Evidence, state: State) -> None:
        self.file = file
        self.function = function
        self.evidence = evidence
        self.state = state
        self.constants: Constants = (
            NO_CONSTANTS  # of the parameters, where the function is followed for some callers alone
        )
        self.loops: list[Loop] = []
        self.record = False
        self.stmt: ir.Stmt | None = None
        self.cls = file.class_of(function)
        self.self_name = _self_name(function)

    # --- names -------------------------------------------------------------------------------------------------

    def is_local(self, name: str) -> bool:
        return name in self.state.vars or (
            name in self.evidence.assigned and name not in self.evidence.declared
        )

    def qualified(self, path: str | None) -> str | None:
        """The qualified name a dotted path denotes, unless its first part is a variable here."""
        if path is None:
            return None
        head = path.partition(".")[0]
        if head in self.state.vars or self.is_local(head) or head in self.file.shadowed:
            return None
        return self.file.names.qualify(path)

    def load(self, path: str) -> Val:
        """The value of a plain name."""
        found = self.state.vars.get(path)
        if found is None:
            found = UNKNOWN if self.is_local(path) else self.file.free_name(self.function, path)
        return self.with_evidence(path, found)

    def with_evidence(self, path: str, value: Val) -> Val:
        if value.kind in (Kind.UNKNOWN, Kind.SYMBOL) and self.file.treated_as_module(self.function, path):
            flags = FROZEN if self.file.is_frozen(self.function, path) else 0
            return Val(Kind.MODULE, flags=flags)
        if (
            value.kind in (Kind.UNKNOWN, Kind.SYMBOL)
            and path in self.evidence.optimizers
            and "opt" in path.lower()
        ):
            return OPTIMIZER
        return value

    # --- expressions -------------------------------------------------------------------------------------------

    def eval(self, expr: ir.Expr) -> Val:
        kind = type(expr)
        if kind is ir.Name:
            return self.load(expr.id)  # type: ignore[attr-defined]
        if kind is ir.Const:
            return _constant(expr)  # type: ignore[arg-type]
        if kind is ir.Call:
            return self.call(expr)  # type: ignore[arg-type]
        if kind is ir.Attr:
            return self.attribute(expr)  # type: ignore[arg-type]
        if isinstance(expr, ir.Op):
            return self.operation(expr)
        if isinstance(expr, ir.Sub):
            return self.subscript(expr)
        if isinstance(expr, ir.Seq):
            items = tuple(self.eval(item) for item in expr.items)
            known = None if any(isinstance(item, ir.Starred) for item in expr.items) else items
            if known is not None:
                return container(items=known)
            if expr.items and not any(isinstance(item, ir.Starred) for item in expr.items[:-1]):
                return container(items=items)  # what stands for the rest comes last
            elem: Val | None = None
            for item in items:
                elem = item if elem is None else join(elem, item)
            return container(elem)
        if isinstance(expr, ir.DictDisplay):
            return self.dictionary(expr)
        if isinstance(expr, ir.Text):
            for part in expr.parts:
                self.eval(part)
            return HOST
        if isinstance(expr, ir.Comp):
            return self.comprehension(expr)
        if isinstance(expr, ir.Wrapper):
            return self.wrapper(expr)
        if isinstance(expr, ir.Walrus):
            value = self.eval(expr.value)
            self.bind(expr.target, value, expr.value)
            return value
        if isinstance(expr, ir.LambdaExpr):
            return Val(Kind.FUNCTION, ref=expr.function)
        if isinstance(expr, ir.Slice):
            for part in expr.parts:
                self.eval(part)
        return UNKNOWN

    @abstractmethod
    def yielded(self, value: Val) -> None:
        """A generator hands a value out."""

    def wrapper(self, expr: ir.Wrapper) -> Val:
        value = self.eval(expr.value)
        if expr.kind == "star":
            return element(value)
        if expr.kind.startswith("yield"):
            self.yielded(value)
            return UNKNOWN
        return value

    def dictionary(self, expr: ir.DictDisplay) -> Val:
        elem: Val | None = None
        items: list[Val] = []
        for key, value in expr.pairs:
            if key is not None:
                self.eval(key)
            part = self.eval(value)
            if key is None:
                part = element(part)
            items.append(part)
            elem = part if elem is None else mixed(elem, part)
        keys = tuple(key.value if isinstance(key, ir.Const) else None for key, _ in expr.pairs)
        return container(elem, tuple(items), keys=keys)

    def attribute(self, expr: ir.Attr) -> Val:
        path = expr.path
        if path is not None:
            found = self.state.vars.get(path)
            if found is not None:
                return self.with_evidence(path, found)
            qualified = self.qualified(path)
            if qualified is not None:
                imported = self.file.imported_value(qualified)
                return imported if imported is not None else Val(Kind.QUALIFIED, ref=qualified)
        base = self.eval(expr.base)
        return self.attribute_of(base, expr)

    def attribute_of(self, base: Val, expr: ir.Attr) -> Val:
        attr = expr.attr
        kind = base.kind
        if kind is Kind.GRAPH:
            return self.proven(expr, self.graph_attribute(base, expr))
        if kind is Kind.DEVICE:
            return HOST if attr in HOST_ATTRS else _scalar_field(base, attr)
        if kind is Kind.SYMBOL:
            if attr in HOST_ATTRS:
                return HOST
            if attr in OUTPUT_TENSORS:
                return base
            return detached(base) if attr == "data" else Val(Kind.UNKNOWN, base.tokens)
        if kind is Kind.INSTANCE:
            value = self.file.attr_value(base.ref, attr)
            known = value.kind is Kind.MODULE
            if not known and expr.path is not None:
                value = self.with_evidence(expr.path, value)
            if value.kind is Kind.MODULE:
                settled = EVAL if base.ref.stays_in_eval(attr) else 0
                frozen = known and expr.path and self.file.is_frozen(self.function, expr.path)
                flags = FROZEN if frozen or self.is_frozen_part(base, attr) else 0
                value = value.with_flags((base.flags & EVAL) | settled | flags)
            return value
        if kind is Kind.MODULE:
            return self.module_attribute(base, expr)
        if kind is Kind.CLASS:
            return self.file.attr_value(base.ref, attr)
        if kind is Kind.HOST:
            return HOST
        if kind is Kind.CONTAINER:
            # A namespace or dataclass of known fields is not modelled: only what its parts prove.
            return Val(Kind.UNKNOWN, base.tokens)
        if attr == "data":
            return UNKNOWN
        if self.is_frozen_part(base, attr):
            return Val(Kind.MODULE, flags=FROZEN)
        value = Val(Kind.UNKNOWN, base.tokens, base.flags & FRESH)
        return self.with_evidence(expr.path, value) if expr.path is not None else value

    def is_frozen_part(self, base: Val, attr: str) -> bool:
        """Whether the class of an object freezes the network that it holds under this name."""
        if isinstance(base.ref, str):
            return attr in frameworks.FROZEN_PARTS.get(base.ref, ())
        return isinstance(base.ref, ClassInfo) and is_part_frozen(base.ref, attr)

    def module_attribute(self, base: Val, expr: ir.Attr) -> Val:
        flags = base.flags & (EVAL | FROZEN) | (FROZEN if self.is_frozen_part(base, expr.attr) else 0)
        if base.ref is not None:
            value = self.file.attr_value(base.ref, expr.attr)
            if value.kind is not Kind.UNKNOWN:
                return value.with_flags(flags) if value.kind is Kind.MODULE else value
        if expr.attr in ("weight", "bias"):
            return UNKNOWN
        if expr.attr == "module":
            return base
        if expr.path is not None and self.file.treated_as_module(self.function, expr.path):
            return Val(Kind.MODULE, flags=flags)
        return Val(Kind.MODULE, flags=flags | MAYBE)

    def require(self, path: str, frozen: bool) -> None:
        """From here on the parameters of a network require no grad, or some do."""
        value = self.state.vars.get(path, UNKNOWN)
        if value.kind not in (Kind.MODULE, Kind.UNKNOWN, Kind.SYMBOL):
            return
        module = value if value.kind is Kind.MODULE else Val(Kind.MODULE)
        born = self.state.born_at(path)
        value = module.with_flags(FROZEN) if frozen else module.without_flags(FROZEN)
        self.state.assign(path, value, born if born is not None else -1)

    def graph_attribute(self, base: Val, expr: ir.Attr) -> Val:
        attr = expr.attr
        if attr in HOST_ATTRS:
            return HOST
        if attr == "data" and not base.is_surely_tensor and lookup.packs_sequences(self.file):
            return base.with_flags(MAYBE)  # a packed sequence's
        if attr == "data":
            self.consume(base)
            return detached(base)
        if attr == "grad":
            return DEVICE
        if attr == "indices":
            return DEVICE
        if attr in TENSOR_FIELDS:
            return base
        if attr == "loss" or (base.has(OUTPUT) and attr in OUTPUT_FIELDS):
            flags = (base.flags & MAYBE) | (SCALAR | LOSS if attr == "loss" else LARGE)
            return Val(Kind.GRAPH, base.tokens, flags)
        if base.has(OUTPUT):
            return Val(Kind.GRAPH, base.tokens, base.flags | MAYBE | NAMED)
        return Val(Kind.UNKNOWN, base.tokens)

    def subscript(self, expr: ir.Sub) -> Val:
        if not isinstance(expr.index, ir.Const):
            self.eval(expr.index)
        if expr.path is not None:
            found = self.state.vars.get(expr.path)
            if found is not None:
                return found
        base = self.eval(expr.base)
        constant = expr.index.value if isinstance(expr.index, ir.Const) else None
        if base.kind is Kind.CONTAINER:
            known = field(base, constant) if constant is not None else None
            if known is not None:
                return known
            if (
                base.items is not None
                and base.ref is None
                and isinstance(constant, int)
                and -len(base.items) <= constant < len(base.items)
            ):
                return base.items[constant]
            if isinstance(expr.index, ir.Slice):
                return _sliced(base, expr.index)
            return self.with_evidence(expr.path or "", element(base))
        if base.kind is Kind.GRAPH:
            item = self.graph_item(base, expr, constant)
            if (expr.base.path, expr.index.path) in self.evidence.chosen:
                return item.without_flags(LARGE | OUTPUT).with_flags(SCALAR)
            return self.proven(expr, item)
        if base.kind is Kind.DEVICE and isinstance(constant, str):
            return _scalar_field(element(base), constant)
        if base.kind is Kind.MODULE:
            return Val(Kind.MODULE, flags=base.flags & (EVAL | FROZEN | MAYBE))
        if expr.path is not None:
            return self.with_evidence(expr.path, element(base))
        return element(base)

    def proven(self, expr: ir.Attr | ir.Sub, value: Val) -> Val:
        """A part of a model's output on which the function calls backward is a tensor with a graph."""
        if value.kind is Kind.GRAPH and value.has(MAYBE) and expr.path in self.evidence.backward:
            scalar = SCALAR if expr.path in self.evidence.scalars else 0
            return value.without_flags(MAYBE | NAMED | OUTPUT).with_flags(scalar)
        return value

    def graph_item(self, base: Val, expr: ir.Sub, constant: object) -> Val:
        source = expr.base
        if isinstance(source, ir.Call) and source.method in PAIRS and constant in (1, -1):
            return DEVICE
        if isinstance(constant, str):
            flags = base.flags | MAYBE | NAMED
            if constant == "loss" and base.has(OUTPUT):
                flags = (base.flags & MAYBE) | SCALAR | LOSS
            return Val(Kind.GRAPH, base.tokens, flags)
        if isinstance(expr.index, ir.Name) and base.has(OUTPUT):
            return Val(Kind.GRAPH, base.tokens, base.flags | MAYBE | NAMED)
        return element(base)

    # --- operators ---------------------------------------------------------------------------------------------

    def operation(self, expr: ir.Op) -> Val:
        op = expr.op
        if op == "if":
            return self.conditional(expr)
        values = [self.eval(operand) for operand in expr.operands]
        if op in ("and", "or"):
            return join(values[0], values[1])
        if op in ("cmp", "==", "!="):
            for value in values:
                self.consume(value)
            return DEVICE if any(value.is_tensor for value in values) else HOST
        if op in ("not", "is", "is not", "in", "not in"):
            return HOST
        if op == "neg":
            return values[0]
        return self.arithmetic(op, values)

    def arithmetic(self, op: str, values: list[Val]) -> Val:
        """Tensor arithmetic: a graph in, a graph out; an unknown operand leaves a proven graph proven."""
        left, right = values
        kinds = {left.kind, right.kind}
        tokens = left.tokens | right.tokens
        if Kind.CONTAINER in kinds:
            return _concatenation(op, left, right, tokens)
        if self.state.grad is Grad.DISABLED and Kind.GRAPH in kinds:
            return detached(left if left.kind is Kind.GRAPH else right)
        if Kind.GRAPH in kinds:
            flags = 0
            graphs = [value for value in values if value.kind is Kind.GRAPH]
            for flag in (SCALAR, LARGE, LOSS):
                others = [
                    value for value in values if value.kind is not Kind.NUMBER and value.kind is not Kind.HOST
                ]
                if flag == LARGE:
                    flags |= flag if any(value.has(flag) for value in graphs) else 0
                else:
                    flags |= flag if all(value.has(flag) for value in others) else 0
            for flag in (MAYBE, NAMED, UNSURE_GRAD, UNSHOWN):
                flags |= flag if all(value.has(flag) for value in graphs) else 0
            return Val(Kind.GRAPH, tokens, flags)
        # Without grad an unknown operand brings no graph, and what a tensor is computed with gives a tensor.
        certain = self.state.grad is Grad.DISABLED and Kind.DEVICE in kinds
        if Kind.SYMBOL in kinds and not certain:
            unseen = Kind.UNKNOWN in kinds or any(v.kind is Kind.SYMBOL and v.has(OPEN) for v in values)
            return Val(Kind.SYMBOL, tokens, OPEN if unseen else 0)
        if Kind.UNKNOWN in kinds and not certain:
            return Val(Kind.UNKNOWN, tokens)
        if Kind.DEVICE in kinds:
            return Val(Kind.DEVICE, flags=(left.flags | right.flags) & (LARGE | SCALAR | LOSS))
        if kinds <= {Kind.HOST, Kind.NUMBER}:
            return (
                join(left, right) if left.kind is right.kind else (left if left.kind is Kind.HOST else right)
            )
        return Val(Kind.UNKNOWN, tokens)

    def conditional(self, expr: ir.Op) -> Val:
        test, then, otherwise = expr.operands
        self.eval(test)
        decided = truth(test, self.constants)
        if decided is not None:
            return self.eval(then if decided else otherwise)
        before = self.state
        self.state = self.narrowed(before.copy(), test, True)
        first = self.eval(then)
        after = self.state
        self.state = self.narrowed(before.copy(), test, False)
        second = self.eval(otherwise)
        self.state = merge(after, self.state)
        return join(first, second)

    @abstractmethod
    def narrowed(self, state: State, test: ir.Expr, holds: bool) -> State:
        """The state where a test holds, or where it does not."""

    def comprehension(self, expr: ir.Comp) -> Val:
        before = self.state
        self.state = before.copy()
        self.enter_comprehension(expr)
        for target, iterable, tests in expr.clauses:
            self.bind_iteration(target, iterable)
            for test in tests:
                self.eval(test)
        values = [self.eval(part) for part in expr.elements]
        self.leave_comprehension(expr)
        inner = self.state
        self.state = before
        self.state.freed = inner.freed
        self.state.retained = inner.retained
        if expr.kind == "generator":
            return container(values[-1])
        return container(values[-1])

    @abstractmethod
    def enter_comprehension(self, expr: ir.Comp) -> None:
        """A comprehension is a loop: in flow.py."""

    @abstractmethod
    def leave_comprehension(self, expr: ir.Comp) -> None:
        """The loop's end."""

    def bind_iteration(self, target: ir.Expr, iterable: ir.Expr) -> None:
        """Bind a loop's target to what its iterable gives, through zip, enumerate and dict views."""
        self.bind(target, self.iterated(iterable), None)

    def iterated(self, iterable: ir.Expr) -> Val:
        if isinstance(iterable, ir.Call):
            name = iterable.method
            plain = isinstance(iterable.func, ir.Name) and not self.is_local(name)
            if plain and name == "enumerate" and iterable.args:
                return container(items=(HOST, self.iterated(iterable.args[0])))
            if plain and name in ("zip", "zip_longest"):
                return container(items=tuple(self.iterated(arg) for arg in iterable.args))
            if plain and name == "range":
                for arg in iterable.args:
                    self.eval(arg)
                return HOST
            if (
                plain
                and name in ("tqdm", "reversed", "sorted", "iter", "list", "tuple", "trange")
                and iterable.args
            ):
                return self.iterated(iterable.args[0])
            if name == "items" and isinstance(iterable.func, ir.Attr):
                return container(items=(UNKNOWN, element(self.eval(iterable.func.base))))
            if name in ("parameters", "named_parameters", "modules", "children"):
                return UNKNOWN
        value = self.eval(iterable)
        if value.kind is Kind.CONTAINER and is_dict(value):
            return HOST
        if value.kind is Kind.CONTAINER and value.items is not None and isinstance(iterable, ir.Seq):
            return element(value)
        if value.kind is Kind.MODULE:
            return Val(Kind.MODULE, flags=value.flags & (EVAL | FROZEN))
        return element(value)

    # --- what happens to graphs --------------------------------------------------------------------------------

    def consume(self, value: Val) -> None:
        """Something that needs no graph reads the value."""
        if self.record and value.tokens:
            self.file.read |= value.tokens

    def escape(self, value: Val) -> None:
        """The value goes where the analysis cannot follow."""
        if self.record and value.tokens:
            self.file.escaped |= value.tokens

    def free(self, value: Val, retain: bool) -> None:
        """A backward goes through the value."""
        if not value.tokens:
            return
        if retain:
            self.state.retained |= with_inner(value.tokens)
        everything = with_inner(value.tokens)
        self.state.freed |= everything
        self.file.freed |= everything
        for token in everything:
            self.file.freed_by.setdefault(token, set()).add(self.function)


def _self_name(function: ir.Function) -> str | None:
    if function.cls is None or function.name == "<lambda>":
        return None
    if any(isinstance(item, ir.Name) and item.id == "staticmethod" for item in function.decorators):
        return None
    return function.params[0].name if function.params else None


def _sliced(base: Val, index: ir.Slice) -> Val:
    """`outputs[1:]` of values of which each is known."""
    ends = [part.value if isinstance(part, ir.Const) else part for part in (index.lower, index.upper)]
    counted = all(end is None or isinstance(end, int) for end in ends) and len(index.parts) < 3
    if base.items is None or base.ref is not None or not counted:
        return container(base.elem)
    return container(items=base.items[slice(*ends)])


def _constant(expr: ir.Const) -> Val:
    value = expr.value
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return NUMBER
    return HOST


def _scalar_field(value: Val, name: str) -> Val:
    """The loss among a model's outputs is a scalar."""
    if name == "loss" and value.has(OUTPUT):
        return Val(Kind.DEVICE, flags=(value.flags & MAYBE) | SCALAR | LOSS)
    return value


def _concatenation(op: str, left: Val, right: Val, tokens: frozenset) -> Val:  # type: ignore[type-arg]
    if left.kind is Kind.CONTAINER and right.kind is Kind.CONTAINER:
        if left.items is not None and left.ref is None and right.ref is None and op == "+":
            rest = right.items if right.items is not None else (right.elem,) if right.elem is not None else ()
            return container(
                items=(*left.items, *rest)
            )  # `[loss] + states`: what stands for the rest comes last
        elem = (
            right.elem
            if left.elem is None
            else left.elem
            if right.elem is None
            else join(left.elem, right.elem)
        )
        return container(elem)
    inner = left if left.kind is Kind.CONTAINER else right
    return container(inner.elem) if op in ("+", "*") else Val(Kind.UNKNOWN, tokens)
