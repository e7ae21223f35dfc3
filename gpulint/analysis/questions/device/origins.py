"""Where the tensors that a function hands to a network come from: made up on the spot, or built on the CPU and left there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.torch.names import HOST_ATTRS, KEEPS_GRAPH, REDUCTIONS, TO_DEVICE, TO_HOST

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

# Functions of torch that need no data: the tensors of demos, probes and measurements, but of sampling as well.
_MADE_UP = frozenset(
    "rand randn zeros ones empty full randint normal eye arange linspace randperm rand_like randn_like zeros_like "
    "ones_like empty_like full_like".split()
)
# Functions and types of torch that copy data into a tensor, on the CPU where nothing else is said.
_COPIED = frozenset(
    "tensor as_tensor from_numpy asarray Tensor FloatTensor LongTensor IntTensor DoubleTensor BoolTensor ByteTensor "
    "HalfTensor".split()
)
_MOVES = frozenset("to cuda cpu type type_as".split())
_DTYPES = frozenset(
    "float float16 float32 float64 half bfloat16 double long int int8 int16 int32 int64 uint8 bool dtype".split()
)


@dataclass(frozen=True, slots=True)
class Source:
    """One thing that a tensor is made of. `on_cpu`: certainly there, and not moved from there on the way."""

    made_up: bool
    on_cpu: bool


_UNSEEN = Source(False, False)


def bindings(function: ir.Function) -> dict[str, list[ir.Expr | None]]:
    """What each plain name of a function is bound to; None where that is no expression of its own, as in a loop."""
    found: dict[str, list[ir.Expr | None]] = {param.name: [None] for param in function.params}
    for statement in ir.statements(function.body):
        simple = isinstance(statement, ir.Assign) and all(isinstance(t, ir.Name) for t in statement.targets)
        for target in targets(statement):
            if isinstance(target, ir.Name):
                value = statement.value if simple and isinstance(statement, ir.Assign) else None
                found.setdefault(target.id, []).append(value)
    return found


_GPUS = ("cuda", "mps", "xpu", "npu", "hpu", "mlu", "hip", "xla", "gpu", "tpu", "auto", "meta", "privateuse")


def is_cpu(expr: ir.Expr | None, bound: dict[str, list[ir.Expr | None]]) -> bool:
    """Whether an expression can only denote the CPU, or a chip that torch does not run on: `"cpu"`,
    `torch.device("cpu")`, a name of nothing else."""
    if isinstance(expr, ir.Const):
        return isinstance(expr.value, str) and bool(expr.value) and not expr.value.lower().startswith(_GPUS)
    if isinstance(expr, ir.Call) and expr.method == "device":
        return bool(expr.args) and is_cpu(expr.args[0], {})
    if isinstance(expr, ir.Name):
        values = bound.get(expr.id, [])
        return bool(values) and all(is_cpu(value, {}) for value in values)
    return False


def device_of_move(call: ir.Call) -> ir.Expr | None:
    """The device that `x.to(…)` names; None where it only changes the type."""
    found = call.keyword("device")
    if found is not None or not call.args:
        return found
    first = call.args[0]
    last = first.attr if isinstance(first, ir.Attr) else first.path
    return None if last in _DTYPES else first


class Origins:
    """The sources of one function's tensors, by the bindings of its names, whatever their order."""

    def __init__(self, file: FileAnalysis, function: ir.Function) -> None:
        self._file = file
        self.bound = bindings(function)

    def of_inputs(self, call: ir.Call) -> frozenset[Source]:
        """The sources of all tensors that a call is given; none where it is given numbers only."""
        arguments = (*call.args, *(value for _, value in call.keywords))
        return frozenset(source for arg in arguments for source in self._of(arg, frozenset()))

    def _of(self, expr: ir.Expr, seen: frozenset[str]) -> frozenset[Source]:
        if isinstance(expr, ir.Name):
            return self._of_name(expr.id, seen)
        if isinstance(expr, ir.Attr):
            return frozenset() if expr.attr in HOST_ATTRS else self._of(expr.base, seen)
        if isinstance(expr, ir.Sub):
            return self._of(expr.base, seen)
        if isinstance(expr, ir.Call):
            return self._of_call(expr, seen)
        return self._of_all(expr.children(), seen)

    def _of_all(self, parts: tuple[ir.Expr, ...], seen: frozenset[str]) -> frozenset[Source]:
        return frozenset(source for part in parts for source in self._of(part, seen))

    def _of_name(self, name: str, seen: frozenset[str]) -> frozenset[Source]:
        if name in seen:
            return frozenset()  # `x = x.unsqueeze(0)`: the other bindings decide
        values = self.bound.get(name)
        if not values:
            return frozenset({_UNSEEN})
        found: set[Source] = set()
        for value in values:
            found |= {_UNSEEN} if value is None else self._of(value, seen | {name})
        return frozenset(found)

    def _of_call(self, call: ir.Call, seen: frozenset[str]) -> frozenset[Source]:
        name = call.method
        qualified = self._file.names.qualify(call.func.path or "") or ""
        if qualified.startswith("torch.") and name in _MADE_UP | _COPIED:
            place = call.keyword("device")
            like = name.endswith("_like")
            return frozenset(
                {Source(name in _MADE_UP, not like and (place is None or is_cpu(place, self.bound)))}
            )
        if call.keyword("return_tensors") is not None:
            return frozenset({Source(False, True)})  # a tokenizer's or a processor's
        if isinstance(call.func, ir.Attr) and not qualified:
            return self._of_method(call, call.func.base, seen)
        if qualified.startswith("torch."):
            return self._of_all((*call.args, *(value for _, value in call.keywords)), seen)
        return frozenset({_UNSEEN})

    def _of_method(self, call: ir.Call, base: ir.Expr, seen: frozenset[str]) -> frozenset[Source]:
        name = call.method
        if name in ("size", "dim", "numel"):
            return frozenset()
        if name in _MOVES:
            return self._moved(call, self._of(base, seen))
        if name in KEEPS_GRAPH | TO_DEVICE | REDUCTIONS | TO_HOST or name.endswith("_"):
            return self._of(base, seen)
        return frozenset({_UNSEEN})

    def _moved(self, call: ir.Call, sources: frozenset[Source]) -> frozenset[Source]:
        place = device_of_move(call)
        if call.method == "to" and place is None:
            return sources
        on_cpu = call.method == "cpu" or (call.method == "to" and is_cpu(place, self.bound))
        return frozenset(Source(source.made_up, on_cpu) for source in sources)
