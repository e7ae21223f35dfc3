"""Places where the host waits for the GPU more often than once a step."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.following import waits_anyway
from gpulint.analysis.file.gradmode import decorator_name
from gpulint.analysis.flow.evaluate import CRITERION_NAME
from gpulint.analysis.torch.methods import WAITS
from gpulint.analysis.torch.names import (
    HOST_ATTRS,
    KEEPS_GRAPH,
    MEASURING,
    PAIRS,
    REDUCTIONS,
    TO_DEVICE,
    TO_HOST,
    is_loss_function,
)
from gpulint.analysis.values.values import Kind

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import FunctionFacts, HotCall, Loop
    from gpulint.analysis.file.program import FileAnalysis

_TENSOR_METHODS = KEEPS_GRAPH | TO_DEVICE | REDUCTIONS | PAIRS
# Only tensors have these: one such call proves what a model gave to be a single tensor.
_PROOF = frozenset(
    "detach argmax softmax log_softmax sigmoid mean sum max min topk view reshape flatten squeeze unsqueeze permute "
    "size dim contiguous float half norm exp log round clamp eq gt lt ge le sort".split()
)
_READING_BUILTINS = frozenset({"float", "int", "bool", "print"})
_ON_DEVICE = frozenset({"cuda", "device", "gpu", "accelerator", "fabric", "gpus", "use_cuda", "accelerate"})

# What it calls besides: `time.time()`, `self.times.append(…)`. A name alone, as of a batch's times of day, measures nothing.
_CLOCK = re.compile(r"(?i)(?:^|[_.])times?(?:[_.]|$)|time$")
# Work on other streams, or in other processes, may need the wait.
_CONCURRENT = frozenset(
    "Stream stream wait_stream CUDAGraph graph replay capture_begin capture_end ipc_collect share_memory_ "
    "record_stream barrier all_reduce broadcast Event record elapsed_time Thread Queue put nvmlInit "
    "prof profile record_function range_push range_pop cudaProfilerStart cudaProfilerStop".split()
)
_NEEDED = "something here measures time, works beside this stream, or waits for the GPU anyway"


@dataclass(slots=True)
class ElementSync:
    """A loop inside a step that reads a tensor element by element; `reads` are the calls that wait, in order."""

    tensor: ir.Expr
    reads: list[ir.Call]


def needless_waits(file: FileAnalysis) -> list[HotCall]:
    """The `torch.cuda.synchronize()` in every step that nothing in sight needs."""
    found: list[HotCall] = []
    for function in file.function_facts:
        for call in function.hot_calls:
            if call.name == "torch.cuda.synchronize" and call.per_step:
                if _is_needed(file, function, call):
                    call.seldom = _NEEDED
                else:
                    found.append(call)
    return found


def _is_needed(file: FileAnalysis, function: FunctionFacts, call: HotCall) -> bool:
    """Whether something in sight measures what the wait ends, or waits there anyway."""
    measures = _measures(file, call.function) or (call.via is not None and _measures(file, call.via))
    if measures or _is_timed_round(call) or waits_anyway(call.function, call.stmt):
        return True
    return _is_measured(file, function, call)


def _is_timed_round(call: HotCall) -> bool:
    """`for _ in tqdm(range(1000)):` around a forward of the same input again and again: the bar shows the rate, which is right
    only with the wait."""
    loop = call.loops[-1] if call.loops else None
    if loop is None or loop.backwards or loop.steps or not isinstance(loop.stmt, ir.For):
        return False
    rounds = loop.stmt.iterable
    if not isinstance(rounds, ir.Call) or rounds.method not in ("tqdm", "trange", "track"):
        return False
    counted = rounds.method == "trange" or any(
        isinstance(arg, ir.Call) and arg.method == "range" for arg in rounds.args
    )
    index = loop.stmt.target.path
    used = any(
        part.path == index for statement in ir.statements(loop.stmt.body) for part in ir.own_parts(statement)
    )
    return counted and not used


def _is_measured(file: FileAnalysis, facts: FunctionFacts, call: HotCall) -> bool:
    """Whether a caller, near or far, reads a clock around the function that waits. What callers cannot be seen might do is
    noted on the call."""
    seen: set[ir.Function] = {call.function}
    queue = [call.function]
    while queue:
        callers = {caller for caller in file.called_from.get(queue.pop(), ()) if caller not in seen}
        if any(_measures(caller.home, caller) for caller in callers):
            return True
        seen |= callers
        queue += callers
    if any(_measures(one.home, one) for function in seen for one in _decorating(file, function)):
        return True
    if not facts.role.entries:
        return False
    for entry in facts.role.entries:
        others = file.project.files_calling(file.filename, entry) if file.project is not None else None
        for other in others or ():
            for function in other.module.functions:
                if entry.name in other.evidence[function].called and _measures(other, function):
                    return True
    call.unproven = call.unproven or "a caller that is not seen may read a clock after it"
    if not call.loops:
        call.doubt = f"what calls `{call.function.name}` may read a clock after each step"
    return False


def _decorating(file: FileAnalysis, function: ir.Function) -> Iterator[ir.Function]:
    """The project's own functions that decorate a function, and what they put around it."""
    for decorator in function.decorators:
        path, _ = decorator_name(decorator)
        value = (
            file.free_name(function.home.module.body, path) if path is not None and "." not in path else None
        )
        if value is not None and value.kind is Kind.FUNCTION:
            yield value.ref
            yield from (inner for inner in value.ref.home.module.functions if inner.parent is value.ref)


def _measures(file: FileAnalysis, function: ir.Function) -> bool:
    words = file.evidence[function].words if function in file.evidence else set()
    if (
        words & _CONCURRENT
        or any(MEASURING.search(word) for word in words)
        or MEASURING.search(function.name)
    ):
        return True
    owner = function.cls.name if function.cls is not None else ""
    if re.search(r"(?i)bench|timer|profil|latency", owner):
        return True
    return _CLOCK.search(function.name) is not None or any(
        _copies_behind(call) or _CLOCK.search(call.func.path or call.method)
        for _, call in ir.calls(function.body)
    )


def _copies_behind(call: ir.Call) -> bool:
    """A copy to the host that does not wait by itself."""
    waits = call.keyword("non_blocking")
    if waits is None or (isinstance(waits, ir.Const) and not waits.value):
        return False
    to_host = any(isinstance(arg, ir.Const) and arg.value == "cpu" for arg in call.args)
    return call.method == "copy_" or to_host


# --- element by element ------------------------------------------------------------------------------------------


def element_syncs(file: FileAnalysis) -> list[ElementSync]:
    """The loops nested in a step that wait for the GPU once an element of one of the step's tensors."""
    functions = file.function_facts
    if not any(evidence.words & _ON_DEVICE for evidence in file.evidence.values()):
        return []
    found: list[ElementSync] = []
    for function in functions:
        for loop, calls in _steps(file, function):
            block = loop.stmt.body if loop is not None else function.function.body
            found += _Step(file, function.function, calls).run(block)
    return found


def _steps(file: FileAnalysis, facts: FunctionFacts) -> Iterator[tuple[Loop | None, set[int]]]:
    """The innermost loops that run a model, and the function itself where it is one step, with the model's calls."""
    found: dict[int, tuple[Loop | None, set[int]]] = {}
    for forward in facts.forwards:
        loop = forward.loops[-1] if forward.loops else None
        if loop is None and not (
            file.runs_per_step(facts.function) or facts.function in file.called_in_data_loop
        ):
            continue
        if loop is not None and (not loop.is_step_loop or not hasattr(loop.stmt, "body")):
            continue
        found.setdefault(id(loop), (loop, set()))[1].add(id(forward.call))
    yield from found.values()


class _Step:
    """Follows the tensors of one step through its statements: "output" of a model, "tensor", "pair" of tensors."""

    def __init__(self, file: FileAnalysis, function: ir.Function, forwards: set[int]) -> None:
        self.file = file
        self.forwards = forwards
        self.names: dict[str, str] = {}
        self.proven = _proven(function)
        self.found: list[ElementSync] = []

    def run(self, block: list[ir.Stmt]) -> list[ElementSync]:
        self.block(block)
        return self.found

    def block(self, block: Iterable[ir.Stmt]) -> None:
        for statement in block:
            for part in ir.own_parts(statement):
                if isinstance(part, ir.Comp):
                    self.comprehension(part)
            if isinstance(statement, ir.Assign) and statement.value is not None:
                for target in statement.targets:
                    self.bind(target, statement.value)
            elif isinstance(statement, ir.For):
                self.inner(statement)
            elif isinstance(statement, (ir.With, ir.Try)):
                for inner in statement.blocks():
                    self.block(inner)
            elif isinstance(statement, ir.If):
                self.forget(statement)

    def forget(self, statement: ir.Stmt) -> None:
        """What a branch binds is not followed, and neither is what happens in it only now and then."""
        for inner in ir.statements([statement]):
            if isinstance(inner, ir.Assign):
                for target in inner.targets:
                    for part in ir.walk(target):
                        if isinstance(part, ir.Name):
                            self.names.pop(part.id, None)

    def bind(self, target: ir.Expr, value: ir.Expr) -> None:
        if isinstance(target, ir.Seq):
            if isinstance(value, ir.Seq) and len(value.items) == len(target.items):
                for part, single in zip(target.items, value.items, strict=True):
                    self.bind(part, single)
                return
            kind = self.kind(value)
            for part in target.items:
                if isinstance(part, ir.Name):
                    self.note(part.id, {"pair": "tensor", "output": "output"}.get(kind or ""))
        elif isinstance(target, ir.Name):
            self.note(target.id, self.kind(value))

    def note(self, name: str, kind: str | None) -> None:
        if kind is None:
            self.names.pop(name, None)
        else:
            self.names[name] = kind

    # --- what an expression is -----------------------------------------------------------------------------------

    def kind(self, expr: ir.Expr) -> str | None:
        if isinstance(expr, ir.Name):
            found = self.names.get(expr.id)
            return "tensor" if found == "output" and expr.id in self.proven else found
        if isinstance(expr, ir.Call):
            return self.call(expr)
        if isinstance(expr, ir.Attr):
            base = self.kind(expr.base)
            if base is None or expr.attr in HOST_ATTRS:
                return None
            return "tensor" if expr.attr in ("data", "T", "logits", "last_hidden_state") else None
        if isinstance(expr, ir.Sub):
            return self.item(expr)
        if isinstance(expr, ir.Op) and expr.op not in (
            "if",
            "and",
            "or",
            "not",
            "in",
            "not in",
            "is",
            "is not",
        ):
            return (
                "tensor"
                if any(self.kind(operand) in ("tensor", "output") for operand in expr.operands)
                else None
            )
        return None

    def item(self, expr: ir.Sub) -> str | None:
        base = self.kind(expr.base)
        if base == "tensor":
            return "tensor"
        if base == "pair":
            return "tensor" if isinstance(expr.index, ir.Const) else None
        if base == "output" and isinstance(expr.index, (ir.Seq, ir.Slice)):
            return "tensor" if isinstance(expr.index, ir.Seq) else "output"
        return None

    def call(self, expr: ir.Call) -> str | None:
        if id(expr) in self.forwards:
            return "output"
        method = expr.method
        qualified = self.file.names.qualify(expr.func.path) if expr.func.path is not None else None
        if qualified is not None and qualified.startswith("torch."):
            kinds = [self.kind(arg) for arg in expr.args]
            known = method in _TENSOR_METHODS or is_loss_function(qualified)
            if known and ("tensor" in kinds or "output" in kinds):
                return self.shape(expr, method, len(expr.args) > 1)
            return None
        if isinstance(expr.func, ir.Attr):
            base = self.kind(expr.func.base)
            if base is not None and base != "pair":
                if method in TO_HOST or _to_host(expr) or method not in _TENSOR_METHODS:
                    return None
                return self.shape(expr, method, bool(expr.args))
        path = expr.func.path or ""
        if CRITERION_NAME.search(path) or path.rpartition(".")[2] in ("crit", "loss_fn"):
            return "tensor" if any(self.kind(arg) in ("tensor", "output") for arg in expr.args) else None
        return None

    def shape(self, expr: ir.Call, method: str, positional: bool) -> str:
        by_dimension = positional or expr.keyword("dim") is not None or expr.keyword("k") is not None
        return "pair" if method in PAIRS and method not in ("argsort",) and by_dimension else "tensor"

    # --- inner loops ---------------------------------------------------------------------------------------------

    def inner(self, loop: ir.For) -> None:
        known = self.file.loops.get(id(loop))
        if known is not None and (known.forwards or known.backwards or known.steps):
            return
        elements, tensor = self.elements(loop.target, loop.iterable)
        variables = _names(loop.target)
        reads: list[ir.Call] = []
        for statement in ir.statements(loop.body):
            if isinstance(statement, ir.For):
                variables |= _names(statement.target)
            for part in ir.own_parts(statement):
                if isinstance(part, ir.Call) and (read := self.reads(part, elements, variables)) is not None:
                    reads.append(part)
                    tensor = tensor or read
            if isinstance(statement, ir.Assign) and statement.value is not None:
                taken = self.element(statement.value, elements, variables)
                for target in statement.targets:
                    if isinstance(target, ir.Name):
                        (elements.add if taken is not None else elements.discard)(target.id)
        if reads and tensor is not None:
            self.found.append(ElementSync(tensor, reads))

    def comprehension(self, comp: ir.Comp) -> None:
        target, iterable, _ = comp.clauses[0]
        elements, tensor = self.elements(target, iterable)
        variables = _names(target)
        reads: list[ir.Call] = []
        for root in comp.elements:
            for part in ir.walk(root):
                if isinstance(part, ir.Call) and (read := self.reads(part, elements, variables)) is not None:
                    reads.append(part)
                    tensor = tensor or read
        if reads and tensor is not None:
            self.found.append(ElementSync(tensor, reads))

    def elements(self, target: ir.Expr, iterable: ir.Expr) -> tuple[set[str], ir.Expr | None]:
        """The names that are bound to elements of a tensor by iterating over it, and the tensor."""
        if (
            isinstance(iterable, ir.Call)
            and isinstance(iterable.func, ir.Name)
            and isinstance(target, ir.Seq)
        ):
            if iterable.method == "enumerate" and len(target.items) == 2 and iterable.args:
                return self.elements(target.items[1], iterable.args[0])
            if iterable.method == "zip" and len(target.items) == len(iterable.args):
                names: set[str] = set()
                tensor: ir.Expr | None = None
                for part, source in zip(target.items, iterable.args, strict=True):
                    inner, found = self.elements(part, source)
                    names |= inner
                    tensor = tensor or found
                return names, tensor
        if isinstance(target, ir.Name) and self.kind(iterable) == "tensor":
            return {target.id}, iterable
        return set(), None

    def reads(self, call: ir.Call, elements: set[str], variables: set[str]) -> ir.Expr | None:
        """The tensor that a call waits for an element of, or None."""
        if isinstance(call.func, ir.Attr) and (call.method in WAITS or _to_host(call)):
            return self.element(call.func.base, elements, variables)
        if isinstance(call.func, ir.Name) and call.method in _READING_BUILTINS and len(call.args) == 1:
            return self.element(call.args[0], elements, variables)
        return None

    def element(self, expr: ir.Expr, elements: set[str], variables: set[str]) -> ir.Expr | None:
        """The tensor whose element, picked by a loop's variable, the expression is or is computed from."""
        if isinstance(expr, ir.Name):
            return expr if expr.id in elements else None
        if isinstance(expr, ir.Sub):
            picked = any(isinstance(part, ir.Name) and part.id in variables for part in ir.walk(expr.index))
            if picked and not _is_cropped(expr.index) and self.kind(expr.base) == "tensor":
                return expr.base
            return self.element(expr.base, elements, variables)
        if isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr):
            if expr.method in _TENSOR_METHODS and not _to_host(expr):
                of_torch = expr.args and self.is_torch(expr)
                return self.element(expr.args[0] if of_torch else expr.func.base, elements, variables)
        return None

    def is_torch(self, call: ir.Call) -> bool:
        """`torch.argmax(x)`, not `x.argmax()`."""
        qualified = self.file.names.qualify(call.func.path) if call.func.path is not None else None
        return qualified is not None and qualified.startswith("torch.")


def _is_cropped(index: ir.Expr) -> bool:
    """`out[i, :lengths[i]]`: each element is only part of its row, so the whole would be more to copy."""
    return any(isinstance(part, ir.Slice) and len(part.parts) > 0 for part in ir.walk(index))


def _to_host(call: ir.Call) -> bool:
    return call.method == "cpu" or (
        call.method == "to" and any(isinstance(arg, ir.Const) and arg.value == "cpu" for arg in call.args)
    )


def _names(target: ir.Expr) -> set[str]:
    return {part.id for part in ir.walk(target) if isinstance(part, ir.Name)}


def _proven(function: ir.Function) -> frozenset[str]:
    """The names on which a method of tensors is called, and those that are compared with targets for a loss."""
    found: set[str] = set()
    compared: dict[str, str] = {}  # loss -> prediction
    for statement, call in ir.calls(function.body):
        if isinstance(call.func, ir.Attr) and isinstance(call.func.base, ir.Name):
            if call.method in _PROOF:
                found.add(call.func.base.id)
            elif call.method == "backward" and call.func.base.id in compared:
                found.add(compared[call.func.base.id])
        match statement, call.args:
            case ir.Assign(targets=[ir.Name(id=loss)], value=value), [ir.Name(id=prediction), _] if (
                value is call
            ):
                compared[loss] = prediction
    return frozenset(found)
