"""What speaks against reporting an evaluation with grad: signs that it never meets a GPU, that it is a try-out or a
probe, that grad is off where nobody can see it, or that the caller may want gradients after all.

A rule asks here last, of the few forwards that everything else has let pass. What refutes the claim, or nearly so, is
enough for silence alone; what only leaves it open is told with a report of low confidence.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.code.following import main_blocks
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.file.lookup import names_only_cpu
from gpulint.analysis.file.weights.parameters import Weights, weights_of
from gpulint.analysis.questions.backward.differentiating_networks import (
    differentiating_networks,
    may_be,
)
from gpulint.analysis.questions.backward.under_calls import BackwardUnderCalls
from gpulint.analysis.questions.device.by_constant import everything_on_cpu, speaks_of_no_device
from gpulint.analysis.questions.device.made_on_cpu import is_made_on_cpu
from gpulint.analysis.questions.device.origins import Origins, bindings, device_of_move, is_cpu
from gpulint.analysis.questions.grad.frozen_networks import classes_bound, handed_frozen, is_frozen
from gpulint.analysis.questions.grad.no_graph import (
    array_of_uncut,
    callers_want_none,
    is_gauged,
    is_read_on_cpu,
)
from gpulint.analysis.questions.grad.own_guards import (
    guards_by_name,
    handed_over,
    is_list_of_things,
    knows_another_way,
    may_guard,
)
from gpulint.analysis.questions.grad.results import Result
from gpulint.analysis.questions.grad.settings import frozen_by_settings
from gpulint.analysis.questions.grad.weights import frozen_by_flag, weights_in_doubt
from gpulint.analysis.questions.reached.handed import cannot_take
from gpulint.analysis.torch import frameworks
from gpulint.analysis.torch.methods import GIVES_ITSELF
from gpulint.analysis.torch.names import GRAD_SWITCHES
from gpulint.analysis.values.values import Kind
from gpulint.answers import Answer, Question, Verdict, left_open, refuted

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
_EXPORTS = frozenset("export trace trace_module InferenceSession".split())
_CLOCKS = frozenset("time perf_counter monotonic default_timer process_time elapsed_time".split())
_HOOKS = frozenset("register_forward_hook register_forward_pre_hook".split())
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
        self._backward = BackwardUnderCalls()

    def about(self, facts: FunctionFacts, forward: Forward) -> bool:
        """Whether anything refutes the claim that this forward should run without grad, on a GPU, or nearly does."""
        return next(self.against(facts, forward), None) is not None

    def against(self, facts: FunctionFacts, forward: Forward) -> Iterator[Answer]:
        """What refutes that claim, or nearly does."""
        path = forward.module.path or "the model"
        if forward.given.given_host and not self._reads_texts(forward):
            yield refuted(Question.TENSOR, f"`{path}` is given nothing but texts, paths, arrays and numbers")
        if self._is_probe(facts, forward):
            yield refuted(Question.MEANT, "only a constructor, an export or a look at the shape needs it")
        if self._is_try_out(facts, forward) and not self._is_timed(forward):
            yield refuted(Question.MEANT, "a try-out: its input is made up, or nobody reads its result")
        yield from self._elsewhere(facts, forward)
        if self._is_reinforced(forward):
            yield refuted(Question.BACKWARD, "what is drawn from its result is reinforced later")
        if callers_want_none(self._file, forward):
            yield refuted(
                Question.GRAD, "each caller that is seen switches grad off, or asks for no gradient"
            )
        if is_frozen(self._file, forward.function, forward.module.path):
            yield refuted(Question.TRAINED, f"`{path}` is frozen where it is made")
        if self._guards_itself(forward):
            yield refuted(Question.GRAD, f"`{path}` switches grad off by itself")
        if (handed := handed_over(self._file, forward)) is not None and handed.verdict is Verdict.REFUTED:
            yield handed
        if knows_another_way(forward):
            yield refuted(Question.GRAD, f"`{path}` has a way of its own to run without grad")
        if guards_by_name(self._file, forward):
            yield refuted(Question.GRAD, f"what `{path}` is called says that it switches grad off by itself")
        if (unfit := cannot_take(self._file, forward)) is not None and unfit.verdict is Verdict.REFUTED:
            yield unfit
        if self._is_part_of_network(facts, forward):
            yield refuted(Question.REACHED, "only the forward of its own module calls it: its caller decides")

    def _reads_texts(self, forward: Forward) -> bool:
        """Whether the network is one of the project, with parameters of its own: it makes tensors of what it is given."""
        path = forward.module.path
        classes = [
            forward.module.network,
            *(classes_bound(self._file, forward.function, path) if path else ()),
        ]
        return any(
            isinstance(one, ClassInfo) and one.is_module and weights_of(one) is Weights.SOME
            for one in classes
        )

    def _elsewhere(self, facts: FunctionFacts, forward: Forward) -> Iterator[Answer]:
        path = forward.module.path or "the model"
        if self.stays_on_cpu(forward):
            yield refuted(Question.DEVICE, f"`{path}` stays on the CPU")
        if self._all_on_cpu:
            yield refuted(Question.DEVICE, "the device of the whole file is the CPU")
        if is_read_on_cpu(facts, forward):
            yield refuted(Question.DEVICE, "its result is read as an array without being brought to the CPU")
        if is_gauged(forward):
            yield refuted(Question.MEANT, "the memory that it takes is what is measured here")
        if not (forward.mode.evaluating or forward.module.pretrained or self.names_gpu_for(forward)):
            yield refuted(Question.DEVICE, "neither eval mode nor a GPU is in sight: two doubts are too many")

    def open(self, facts: FunctionFacts, forward: Forward) -> Iterator[Answer]:
        """What leaves the same claim open."""
        path = forward.module.path or "the model"
        if self._is_timed(forward) and self._is_try_out(facts, forward):
            yield left_open(Question.MEANT, "it only runs to be timed, with the graph or without")
        base = next((name for entry in facts.role.entries if (name := self._unseen_base(entry))), "")
        if base:
            yield left_open(
                Question.REACHED, f"`{base}` is not seen: it may call this with grad switched off"
            )
        elif self._is_up_to_caller(facts, forward):
            yield left_open(Question.REACHED, f"what becomes of `{path}` is up to callers that are not seen")
        if (backward := self._backward.of_forward(forward)) is not None:
            yield left_open(Question.BACKWARD, f"`{backward.name}`, which it calls, may run a backward")
        if forward.module.network is None and (network := self._differentiating(forward)):
            why = f"`{network}` takes gradients in its forward, and `{path}` may be one"
            yield left_open(Question.BACKWARD, why)
        if not forward.mode.evaluating and _is_put_into_train_mode(forward):
            why = f"`{path}` is put into train mode here: it may train within its own forward"
            yield left_open(Question.BACKWARD, why)
        if (unfit := cannot_take(self._file, forward)) is not None and unfit.verdict is Verdict.OPEN:
            yield unfit
        if (handed := handed_over(self._file, forward)) is not None and handed.verdict is Verdict.OPEN:
            yield handed
        if Result(forward).is_given_to_arrays:
            yield left_open(
                Question.GRAD, f"numpy is given what `{path}` gives, and takes nothing with a graph"
            )
        if holder := array_of_uncut(forward):
            why = f"`{holder}` becomes an array undetached, which torch refuses for what has a graph"
            yield left_open(Question.GRAD, why)
        if weights := weights_in_doubt(self._file, forward.module.network):
            yield left_open(Question.TRAINED, weights)
        given = handed_frozen(self._file, forward.function, forward.module.path)
        if given is not None and given.verdict is Verdict.OPEN:
            yield given
        if settled := frozen_by_settings(self._file, forward.function, forward.module.path):
            yield settled
        if flag := frozen_by_flag(self._file, forward.function, forward.call):
            yield left_open(Question.TRAINED, flag)
        if isinstance(forward.module.network, str) and forward.module.network in frameworks.MOSTLY_FROZEN:
            yield left_open(Question.SIZE, frameworks.MOSTLY_FROZEN[forward.module.network])
        if speaks_of_no_device(self._file):
            yield left_open(Question.DEVICE, "nothing in the program says that a GPU is used")
        elif not self.names_gpu_for(forward):
            yield left_open(Question.DEVICE, "nothing in the file says that a GPU is used")
        elif self._only_cpu:
            yield left_open(Question.DEVICE, "the file names the CPU, and never a GPU")

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

    def chooses_mode(self, function: ir.Function) -> bool:
        """Whether the code around a forward speaks of grad modes: where one is not known there, somebody decides about it."""
        around = {*function.scopes(), *self._beside(function)}
        known = any(self._file.evidence[one].words & GRAD_SWITCHES for one in around)
        return known or bool(self._words & {"set_grad_enabled", "enable_grad"})

    # --- probes and try-outs -------------------------------------------------------------------------------------

    def _is_probe(self, facts: FunctionFacts, forward: Forward) -> bool:
        """A forward that only a constructor waits for, or of which only the shape is read; the check of an export."""
        own = forward.function.name.startswith("_") or forward.function.name == "<lambda>"
        if own and facts.role.entries and all(entry.name == "__init__" for entry in facts.role.entries):
            return True
        if self._file.evidence[forward.function].called & _EXPORTS and self._exports(forward.function):
            return True
        return Result(forward).is_only_shape

    def _exports(self, function: ir.Function) -> bool:
        """Whether a call exports or traces a network: the trace of a matrix is another thing."""
        return any(
            call.method in _EXPORTS
            and (self._file.names.qualify(call.func.path or "") or "").partition(".")[0]
            not in frameworks.HOST_LIBRARIES
            and (self._file.names.qualify(call.func.path or "") or "") != "torch.trace"
            for _, call in ir.calls(function.body)
        )

    def _is_try_out(self, facts: FunctionFacts, forward: Forward) -> bool:
        """A network that runs on made-up input for nothing but a look at it; one that is run to be measured."""
        result = Result(forward)
        hooked = any(self._file.evidence[f].words & _HOOKS for f in self._beside(forward.function))
        batches = bool(forward.loops) and any(loop.over_data for loop in forward.loops)
        if result.is_dropped and not hooked and not batches:
            return True
        sources = self._origins_of(forward.function).of_inputs(forward.call)
        if not sources or not all(source.made_up for source in sources):
            return False
        in_demo = forward.function is self._file.module.body and self._is_under_main(forward.stmt)
        shown_class = (
            isinstance(forward.module.network, ClassInfo) and forward.module.network.home is self._file
        )
        return in_demo or result.is_idle or (shown_class and not facts.role.entries)

    def _is_timed(self, forward: Forward) -> bool:
        """Whether a clock runs beside the rounds of a forward: the time of an inference is taken."""
        return bool(forward.loops) and bool(self._file.evidence[forward.function].called & _CLOCKS)

    def _is_under_main(self, statement: ir.Stmt) -> bool:
        """Whether a statement of the module stands under `if __name__ == "__main__":`."""
        return any(inner is statement for inner in ir.statements(main_blocks(self._file.module)))

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
    def _all_on_cpu(self) -> bool:
        return everything_on_cpu(self._file)

    @cached_property
    def _only_cpu(self) -> bool:
        return names_only_cpu(self._file)

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

    # --- the caller's choice -------------------------------------------------------------------------------------

    def _is_reinforced(self, forward: Forward) -> bool:
        """Whether actions that are drawn keep their node, as before torch 0.4: `action.reinforce(reward)`, backward later."""
        draws = {"multinomial", "bernoulli", "normal"} & self._file.evidence[forward.function].called
        return bool(draws) and any(
            "reinforce" in evidence.called for evidence in self._file.evidence.values()
        )

    def _is_up_to_caller(self, facts: FunctionFacts, forward: Forward) -> bool:
        """Whether a function that the caller gives runs the network beside this forward, with a backward maybe."""
        given = any(param.name == forward.module.path for param in forward.function.params)
        data = bool(forward.loops) and any(loop.over_data for loop in forward.loops)
        if (
            given
            and forward.function in facts.role.entries
            and not (forward.mode.evaluating or data or self._trains)
        ):
            return True
        return any(_hands_over(function, forward.module.path) for function in forward.function.scopes())

    def _is_part_of_network(self, facts: FunctionFacts, forward: Forward) -> bool:
        """Whether only the forward of its own module calls a method: whoever runs the module decides."""
        own = forward.function.cls
        return bool(facts.role.entries) and all(
            entry.cls is own
            and (found := self._file.facts.get(entry)) is not None
            and found.role.is_module_forward
            for entry in facts.role.entries
        )

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


def _hands_over(function: ir.Function, network: str) -> bool:
    """`run(model, x)` of a parameter `run`: it does with the network what the caller likes."""
    names = {param.name for param in function.params}
    root = network.partition(".")[0]
    return any(
        isinstance(call.func, ir.Name)
        and call.func.id in names
        and call.func.id != root
        and any(arg.path == network for arg in (*call.args, *(value for _, value in call.keywords)))
        for _, call in ir.calls(function.body)
    )


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
