"""What speaks against what is said of a forward and its graph: signs that it never meets a GPU, or that grad is off where
nobody can see it. A rule asks here last, of the few forwards that everything else has let pass.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.questions.backward.differentiating_networks import (
    differentiating_networks,
    may_be,
)
from gpulint.analysis.questions.device.made_on_cpu import is_made_on_cpu
from gpulint.analysis.questions.device.origins import Origins, bindings, device_of_move, is_cpu
from gpulint.analysis.questions.grad.no_graph import (
    callers_want_none,
    is_read_on_cpu,
)
from gpulint.analysis.questions.grad.own_guards import (
    is_list_of_things,
    may_guard,
)
from gpulint.analysis.questions.grad.results import Result
from gpulint.analysis.torch import frameworks
from gpulint.analysis.torch.methods import GIVES_ITSELF
from gpulint.analysis.values.values import Kind

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import Forward, FunctionFacts
    from gpulint.analysis.file.program import FileAnalysis

# What takes inputs from the CPU to wherever the network is.
_PLACING = frozenset(
    "device_map DataParallel DistributedDataParallel prepare setup dispatch_model set_default_device set_default_tensor_type "
    "setup_module setup_dataloaders deepspeed".split()
)
_DEVICES = frozenset("accelerator Accelerator fabric Fabric mps xpu npu hpu DataParallel".split())
_TRAINS = frozenset("backward optimizer optim".split())
_OFF = frozenset({"no_grad", "inference_mode"})
# Bases that call no method of theirs under a guard, by their last names.
_HARMLESS = frozenset(
    "object ABC Generic Protocol Enum Module Dataset IterableDataset BaseEstimator TransformerMixin ClassifierMixin "
    "RegressorMixin ClusterMixin Thread Process NamedTuple TypedDict BaseModel".split()
)


class Doubts:
    """The doubts about the forwards of one file."""

    def __init__(self, file: FileAnalysis) -> None:
        self._file = file
        self._origins: dict[ir.Function, Origins] = {}

    def about_graph(self, facts: FunctionFacts, forward: Forward) -> bool:
        """Whether the forward may make no graph after all, or none on a GPU: for a claim about what keeps its result."""
        return (
            self.stays_on_cpu(forward)
            or is_read_on_cpu(facts, forward)
            or callers_want_none(self._file, forward)
            or self._guards_itself(forward)
            or any(self._unseen_base(entry) for entry in facts.role.entries)
            or (
                forward.module.network is None
                and _is_put_into_train_mode(forward)
                and bool(self._differentiating(forward))
            )
        )

    def _origins_of(self, function: ir.Function) -> Origins:
        found = self._origins.get(function)
        if found is None:
            found = self._origins[function] = Origins(self._file, function)
        return found

    def _beside(self, function: ir.Function) -> tuple[ir.Function, ...]:
        """The methods of the function's class, itself among them; the function alone where it has none."""
        return tuple(function.cls.methods.values()) if function.cls is not None else (function,)

    # --- no GPU --------------------------------------------------------------------------------------------------

    def stays_on_cpu(self, forward: Forward) -> bool:
        """Whether the forward runs on the CPU by construction."""
        if Result(forward).is_read_on_cpu or self._is_moved_to_cpu(forward) or self._is_never_moved(forward):
            return True
        if is_made_on_cpu(forward):
            return True
        sources = self._origins_of(forward.function).of_inputs(forward.call)
        if not sources or not all(source.on_cpu for source in sources):
            return False
        return not self._words & _PLACING and not self._places_inputs(forward)

    def names_gpu_for(self, forward: Forward) -> bool:
        """Whether the file says that a GPU is used, or is of a kind that is used with one: it goes through data, or trains,
        for which whoever calls it has chosen a device."""
        return self._names_gpu or self._trains or bool(forward.loops and forward.loops[-1].over_data)

    def _is_never_moved(self, forward: Forward) -> bool:
        """Whether a script moves neither the network nor what goes into it, of which it makes both: on a GPU one of the two
        would be in the wrong place."""
        body = self._file.module.body
        if forward.function is not body or self._words & _PLACING:
            return False
        bound: dict[str, ir.Expr | None] = {}  # by what comes last before the forward
        for statement in ir.statements(body.body):
            if statement is forward.stmt:
                break
            for call in ir.own_calls(statement):
                if call.method in ("to", "cuda") and _owner(call, statement) == forward.module.path:
                    return False
            for target in targets(statement):
                if isinstance(target, ir.Name):
                    bound[target.id] = _bound_to(statement)
        if forward.module.path not in bound:
            return False
        values: list[ir.Expr] = [*forward.call.children()]
        while values:
            for part in ir.walk(values.pop()):
                if isinstance(part, ir.Call) and (part.method in ("to", "cuda") or part.keyword("device")):
                    return False
                value = bound.pop(part.id, None) if isinstance(part, ir.Name) else None
                if value is not None:
                    values.append(value)
        return True

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(word for evidence in self._file.evidence.values() for word in evidence.words)

    @cached_property
    def _names_gpu(self) -> bool:
        """Whether anything in the file speaks of devices."""
        strings = {text for evidence in self._file.evidence.values() for text in evidence.strings}
        return any(
            "device" in word or "cuda" in word or "gpu" in word
            for word in (*map(str.lower, self._words), *strings)
        ) or bool(self._words & _DEVICES)

    @cached_property
    def _differentiating_networks(self) -> tuple[ClassInfo, ...]:
        return differentiating_networks(self._file)

    def _differentiating(self, forward: Forward) -> str:
        """The class that takes gradients in its forward and may be what runs; empty where none can be."""
        found = self._differentiating_networks
        return next((one.cls.name for one in found if may_be(one, forward.function, forward.call)), "")

    @cached_property
    def _trains(self) -> bool:
        return bool(self._words & _TRAINS)

    def _places_inputs(self, forward: Forward) -> bool:
        """Whether the network's own forward moves what it is given."""
        if not isinstance(forward.module.network, ClassInfo):
            return False
        method = forward.module.network.method("forward")
        return method is not None and bool(
            method.home.evidence[method].words & {"to", "cuda", "device", "type_as"}
        )

    def _is_moved_to_cpu(self, forward: Forward) -> bool:
        """Whether the network is put on the CPU here, or for an attribute anywhere in the class, and nowhere else."""
        path = forward.module.path
        own = self._file.class_of(forward.function)
        functions = {forward.function, *(self._beside(forward.function) if own is not None else ())}
        there = elsewhere = False
        for function in functions:
            bound = bindings(function)
            for statement in ir.statements(function.body):
                place = _made_on(statement, path) if function is forward.function else None
                if place is not None:
                    there |= is_cpu(place, bound)
                    elsewhere |= not is_cpu(place, bound)
                for call in ir.own_calls(statement):
                    if call.method not in ("cpu", "cuda", "to") or not isinstance(call.func, ir.Attr):
                        continue
                    owner = _owner(call, statement)
                    if owner is None or not f"{path}.".startswith(f"{owner}."):
                        continue
                    if function is not forward.function and "." not in owner:
                        continue
                    place = device_of_move(call)
                    to_cpu = call.method == "cpu" or (call.method == "to" and is_cpu(place, bound))
                    there |= to_cpu
                    elsewhere |= not to_cpu and (call.method == "cuda" or place is not None)
        return there and not elsewhere

    # --- grad mode out of sight ----------------------------------------------------------------------------------

    def _guards_itself(self, forward: Forward) -> bool:
        """Whether the network, by its own class, may switch grad off around what it runs; or takes lists and paths, as
        wrappers do that do everything by themselves."""
        network = forward.module.network
        if isinstance(network, ClassInfo):
            names = {"forward", "__call__", forward.call.method}
            return any(may_guard(network, name, 3) for name in names) or self._has_guarded_part(network)
        unknown = network is None
        return unknown and any(
            (isinstance(arg, ir.Seq) and not self._is_several_inputs(arg, forward))
            or is_list_of_things(forward.function, arg)
            or isinstance(arg, ir.Text)
            or (isinstance(arg, ir.Const) and isinstance(arg.value, str))
            for arg in forward.call.args
        )

    def _is_several_inputs(self, display: ir.Seq, forward: Forward) -> bool:
        """`net([image, question])` of what each round of a loop over batches gives, or where a backward goes through the
        same call elsewhere in the file: one network of several inputs, no wrapper."""
        if (forward.module.path, len(display.items)) in self._trained_with:
            return True
        if display.items and all(_is_placed(item) for item in display.items):
            return True
        if len(display.items) < 2 or not forward.loops or not forward.mode.evaluating:
            return False
        loop = forward.loops[-1]
        bound = {part.path for part in ir.walk(loop.stmt.target)} if isinstance(loop.stmt, ir.For) else set()
        return loop.over_data and all(_without_moves(item) in bound for item in display.items)

    @cached_property
    def _trained_with(self) -> frozenset[tuple[str, int]]:
        """The networks that some backward goes through, with how many inputs they were given in one display."""
        return frozenset(
            (forward.module.path, len(arg.items))
            for facts in self._file.facts.values()
            for forward in facts.forwards
            if forward.result.freed
            for arg in forward.call.args
            if isinstance(arg, ir.Seq)
        )

    def _has_guarded_part(self, network: ClassInfo) -> bool:
        """Whether a module that the network holds guards itself."""
        for info in network.ancestors():
            for value in info.attrs.values():
                if (
                    value.kind is Kind.MODULE
                    and isinstance(value.ref, ClassInfo)
                    and value.ref is not network
                ):
                    if may_guard(value.ref, "forward", 2):
                        return True
        return False

    def _unseen_base(self, function: ir.Function) -> str:
        """A base of the function's class that cannot be seen: it may call the function, under a guard maybe."""
        info = self._file.class_of(function)
        if info is None or self._guarded_by_relatives(info, function.name):
            return ""
        for one in info.lineage():
            seen = {base.cls.name for base in one.bases}
            for name in one.base_names:
                last = name.rsplit(".", 1)[-1]
                if last not in seen and last not in _HARMLESS | frameworks.MODULE_BASES:
                    return last
        return ""

    def _guarded_by_relatives(self, info: ClassInfo, name: str) -> bool:
        """Whether a method of that name of a class above, or of one of the file with the same base, switches grad off by itself:
        whoever calls them does not."""
        line = info.lineage()
        bases = {base for one in line for base in _last_names(one)} - _HARMLESS - frameworks.MODULE_BASES
        beside = (one for one in self._file.classes.values() if one is not info)
        related = [*line[1:], *(one for one in beside if bases & _last_names(one))]
        return any(
            one.home.switches_grad_off(method) or one.home.evidence[method].words & _OFF
            for one in related
            if (method := one.cls.methods.get(name)) is not None
        )


def _last_names(info: ClassInfo) -> set[str]:
    return {name.rsplit(".", 1)[-1] for name in info.base_names}


def _is_put_into_train_mode(forward: Forward) -> bool:
    """`model.train()` in the function that runs it, which nothing takes back there."""
    path = forward.module.path
    called = {call.func.path for _, call in ir.calls(forward.function.body) if not call.args}
    return f"{path}.train" in called and f"{path}.eval" not in called


def _bound_to(statement: ir.Stmt) -> ir.Expr | None:
    """What a statement binds its names to: the items of a loop are what it goes through."""
    if isinstance(statement, ir.For):
        return statement.iterable
    return statement.value if isinstance(statement, ir.Assign) else None


def _without_moves(expr: ir.Expr) -> str | None:
    """The name in `x.to(device).float()`."""
    while isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr) and expr.method in GIVES_ITSELF:
        expr = expr.func.base
    return expr.path if isinstance(expr, ir.Name) else None


def _is_placed(expr: ir.Expr) -> bool:
    """`x.to(device)`, `x.cuda()`: what is put on a device by hand is no path and no picture for a wrapper."""
    if not isinstance(expr, ir.Call) or not isinstance(expr.func, ir.Attr):
        return False
    return expr.method == "cuda" or (expr.method == "to" and device_of_move(expr) is not None)


def _owner(call: ir.Call, statement: ir.Stmt) -> str | None:
    """The network that `.cpu()` or `.to(…)` is called on, through other moves; what it is bound to where it is made."""
    base: ir.Expr = call.func.base if isinstance(call.func, ir.Attr) else call
    while isinstance(base, ir.Call) and base.method in GIVES_ITSELF and isinstance(base.func, ir.Attr):
        base = base.func.base
    if base.path is not None:
        return base.path
    if isinstance(base, ir.Call) and isinstance(statement, ir.Assign) and len(statement.targets) == 1:
        return statement.targets[0].path if _is_tail(statement.value, call) else None
    return None


def _made_on(statement: ir.Stmt, path: str) -> ir.Expr | None:
    """The device in `net = Net.from_pretrained(name, device="cpu")`."""
    value = statement.value if isinstance(statement, ir.Assign) else None
    if not isinstance(value, ir.Call) or all(target.path != path for target in targets(statement)):
        return None
    return value.keyword("device")


def _is_tail(value: ir.Expr | None, call: ir.Call) -> bool:
    """Whether a value is the call, or moves of its result."""
    while value is not call and isinstance(value, ir.Call) and value.method in GIVES_ITSELF:
        value = value.func.base if isinstance(value.func, ir.Attr) else None
    return value is call
