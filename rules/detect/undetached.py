"""Generators that a discriminator's backward runs through, for gradients that are thrown away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.rules.detect.wasted import SWITCHING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.file.facts import Backward, Forward, FunctionFacts
from gpulint.analysis.file.lookup import called, qualified
from gpulint.analysis.questions.grad.freezing import Switched

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis


@dataclass(slots=True)
class Undetached:
    """A discriminator's step that backpropagates into the generator, whose gradients are then thrown away.

    `argument` is what the discriminator is given; `made` the statement that generates it, where nothing else needs
    the generator's graph; `nested`: it is generated in the discriminator's own call. `wanted`: the graph through the
    discriminator serves something besides this backward, so that it cannot be cut there; `doubt` is a clause about why
    cutting it is not proven to change nothing.
    """

    discriminator: Forward
    generator: Forward
    argument: ir.Expr
    backward: Backward
    optimizer: str
    made: ir.Stmt | None
    nested: bool = False
    wanted: bool = False
    doubt: str = ""


class _Optimizers:
    """Which modules each optimizer of the file steps, by the last part of their names."""

    def __init__(self, file: FileAnalysis) -> None:
        self.owners: dict[str, frozenset[str]] = {}
        for function in file.module.functions:
            if "parameters" in file.evidence[function].called:
                self._learn(function)

    def _learn(self, function: ir.Function) -> None:
        lists: dict[str, ir.Expr] = {}
        for statement in ir.statements(function.body):
            if not isinstance(statement, ir.Assign) or statement.value is None:
                continue
            for target, value in _pairs(statement):
                if target.path is None:
                    continue
                if isinstance(value, ir.Call) and value.method[:1].isupper():
                    names = _parameter_owners(value, lists)
                    if names:
                        key = last(target.path)
                        self.owners[key] = self.owners.get(key, frozenset()) | names
                else:
                    lists[target.path] = value

    def of(self, path: str | None) -> frozenset[str]:
        return self.owners.get(last(path), frozenset()) if path is not None else frozenset()


def _pairs(statement: ir.Assign) -> Iterator[tuple[ir.Expr, ir.Expr]]:
    assert statement.value is not None
    for target in statement.targets:
        value = statement.value
        if isinstance(target, ir.Seq) and isinstance(value, ir.Seq) and len(target.items) == len(value.items):
            yield from zip(target.items, value.items, strict=True)
        else:
            yield target, value


def _parameter_owners(call: ir.Call, lists: dict[str, ir.Expr]) -> frozenset[str]:
    """`G` and `E` in `Adam(list(G.parameters()) + list(E.parameters()))`."""
    found: set[str] = set()
    for part in ir.walk(call):
        if isinstance(part, ir.Call) and part.method == "parameters" and isinstance(part.func, ir.Attr):
            if part.func.base.path is not None:
                found.add(last(part.func.base.path))
        elif isinstance(part, ir.Name) and part.id in lists:
            found |= _parameter_owners(ir.Call(part.origin, part, (lists[part.id],), ()), {})
    return frozenset(found)


def last(path: str) -> str:
    return path.rpartition(".")[2]


def undetached(file: FileAnalysis) -> list[Undetached]:
    """Discriminator steps whose loss goes back into a generator that they do not step."""
    functions = file.function_facts
    optimizers = _Optimizers(file)
    if len(optimizers.owners) < 2:
        return []
    found: list[Undetached] = []
    for facts in functions:
        if facts.role.is_test or not facts.backwards:
            continue
        order = {id(s): n for n, s in enumerate(ir.statements(facts.function.body))}
        for backward in facts.backwards:
            if not backward.autograd_grad and not backward.create_graph and id(backward.stmt) in order:
                found += _through_generator(file, functions, facts, backward, order, optimizers)
    return found


def _through_generator(
    file: FileAnalysis,
    functions: list[FunctionFacts],
    facts: FunctionFacts,
    backward: Backward,
    order: dict[int, int],
    optimizers: _Optimizers,
) -> Iterator[Undetached]:
    start = order[id(backward.stmt)]
    later = [order[id(b.stmt)] for b in facts.backwards if order.get(id(b.stmt), -1) > start]
    end = min(later, default=len(order))
    stepped = {
        path
        for statement, path in _steps(facts.function)
        if start <= order[id(statement)] < end and optimizers.of(path)
    }
    if len(stepped) != 1:
        return
    (optimizer,) = stepped
    own = optimizers.of(optimizer)
    for generator in facts.forwards:
        name = last(generator.module.path)
        if (
            generator.site not in backward.tokens
            or name in own
            or "." in generator.module.path.removeprefix("self.")
        ):
            continue
        if Switched(facts.function, SWITCHING).concerns(generator.module.path):
            continue
        theirs = {key for key, names in optimizers.owners.items() if name in names}
        if not theirs or last(optimizer) in theirs:
            continue
        if not all(_discards(functions, facts, key, name, start, order) for key in theirs):
            continue
        if any(other.site in generator.inputs and other is not generator for other in facts.forwards):
            continue  # what it is given comes from a network as well, which may want its gradient
        for discriminator in facts.forwards:
            if last(discriminator.module.path) in own and discriminator.site in backward.tokens:
                argument = _argument_made_by(facts, discriminator, generator, order)
                if argument is not None and order[id(discriminator.stmt)] <= start:
                    nested = generator.stmt is discriminator.stmt
                    made = None if nested else _made_for_this(functions, generator, backward)
                    if not _gives_several(generator, argument):
                        found = Undetached(
                            discriminator, generator, argument, backward, optimizer, made, nested
                        )
                        _judge(file, functions, facts, found)
                        yield found


def _steps(function: ir.Function) -> Iterator[tuple[ir.Stmt, str]]:
    """The optimizers stepped: `opt.step()`, `scaler.step(opt)`."""
    for statement, call in ir.calls(function.body):
        if call.method != "step" or not isinstance(call.func, ir.Attr):
            continue
        if call.args and call.args[0].path is not None:
            yield statement, call.args[0].path
        elif call.func.base.path is not None:
            yield statement, call.func.base.path


def _argument_made_by(
    facts: FunctionFacts, discriminator: Forward, generator: Forward, order: dict[int, int]
) -> ir.Expr | None:
    """The discriminator's argument that is the generator's output itself, by name or by nesting."""
    call = discriminator.call
    for argument in (*call.args, *(value for _, value in call.keywords)):
        if argument is generator.call:
            return argument
        if argument.path is None or not isinstance(generator.stmt, ir.Assign):
            continue
        if generator.stmt.value is not generator.call or len(generator.stmt.targets) != 1:
            continue
        target = generator.stmt.targets[0]
        # `fake, attention = G(z)`: the parts share one graph.
        bound = target.items if isinstance(target, ir.Seq) else (target,)
        if any(part.path == argument.path for part in bound) and _still_that(
            facts, argument.path, generator, discriminator, order
        ):
            return argument
    return None


def _gives_several(generator: Forward, argument: ir.Expr) -> bool:
    """Whether the generator, by its own class, gives a tuple or a dict that the discriminator takes as it is: that has no
    `detach()`."""
    bound = generator.stmt.targets[0] if isinstance(generator.stmt, ir.Assign) else None
    if argument is not generator.call and isinstance(bound, ir.Seq):
        return False
    forward = (
        generator.module.network.method("forward")
        if isinstance(generator.module.network, ClassInfo)
        else None
    )
    return forward is not None and any(
        isinstance(statement, ir.Return) and isinstance(statement.value, (ir.Seq, ir.DictDisplay))
        for statement in ir.statements(forward.body)
    )


# Modules of torch whose forward gives more than one tensor.
_SEVERAL = frozenset("LSTM GRU RNN LSTMCell MultiheadAttention AdaptiveLogSoftmaxWithLoss".split())
# What reads a gradient that would no longer be there.
_READS_GRADIENTS = frozenset({"clip_grad_norm_", "clip_grad_norm", "clip_grad_value_", "get_total_norm"})


def _judge(
    file: FileAnalysis, functions: list[FunctionFacts], facts: FunctionFacts, found: Undetached
) -> None:
    """Settle whether the graph from the discriminator's output to the generator may be cut, and how."""
    judged = found.discriminator
    shared = any(
        judged.site in other.tokens
        for each in functions
        for other in each.backwards
        if other is not found.backward
    )
    names = _computed_from(facts.function, judged.stmt)
    unseen = ""
    for _, call in ir.calls(facts.function.body):
        parts = [part for value in _given(call) for part in ir.walk(value)]
        inside = {id(part) for part in ir.walk(judged.call)} if judged.call in parts else set()
        given = {part.path for part in parts if id(part) not in inside} - {None}
        if call is found.backward.call or not (given & names or judged.call in parts):
            continue
        callee = called(file, facts.function, call)
        summary = callee.home.summaries.get(callee) if callee is not None else None
        if qualified(file, facts.function, call.func.path) == "torch.autograd.grad":
            shared = True
        elif summary is not None:
            shared |= summary.autograd_grad or summary.backwards > 0
        elif judged.result.escaped and _reaches_generator(facts.function, call, found, given):
            unseen = call.func.path or "a call"
    found.wanted = shared
    if unseen:
        found.doubt = f"`{unseen}` may differentiate what it is given"
    elif found.backward.retain and (judged.result.returned or judged.result.stored):
        found.doubt = "the graph is retained, and what the discriminator gives is used elsewhere"
    elif _reads_gradients(facts.function, last(found.generator.module.path)):
        found.doubt = f"the gradients of `{found.generator.module.path}` are read before they are zeroed"
    elif found.made is None and not _is_tensor(found):
        found.doubt = f"`{found.generator.module.path}` may give something else than a tensor"


def _reaches_generator(
    function: ir.Function, call: ir.Call, found: Undetached, given: set[str | None]
) -> bool:
    """Whether a call could ask for gradients of the sample or of the generator: it is given them, or the object that has
    them. A criterion is given scores, and no more."""
    own = function.params[0].name if function.cls is not None and function.params else None
    method = own is not None and (call.func.path or "").split(".")[:-1] == [own]
    return method or bool(given & {found.argument.path, found.generator.module.path} - {None})


def _computed_from(function: ir.Function, start: ir.Stmt) -> set[str | None]:
    """The names that a statement binds, and those computed from them, whatever the order."""
    names: set[str | None] = {target.path for target in targets(start)} - {None}
    grown = True
    while grown:
        grown = False
        for statement in ir.statements(function.body):
            bound = {target.path for target in targets(statement)} - {None}
            if bound <= names:
                continue
            if any(part.path in names for part in ir.own_parts(statement)):
                names |= bound
                grown = True
    return names


def _reads_gradients(function: ir.Function, generator: str) -> bool:
    """`p.grad` anywhere, or the generator's parameters clipped: the sum that clips them has fewer gradients then."""
    for statement in ir.statements(function.body):
        for part in ir.own_parts(statement):
            if isinstance(part, ir.Attr) and part.attr == "grad":
                if not (part.path or "").endswith("autograd.grad"):
                    return True
            elif isinstance(part, ir.Call) and part.method in _READS_GRADIENTS:
                paths = {inner.path or "" for value in _given(part) for inner in ir.walk(value)}
                if any(last(path) == generator for path in paths):
                    return True
    return False


def _is_tensor(found: Undetached) -> bool:
    """Whether the class of the generator is in sight, and gives one tensor, or is one of torch's that do."""
    network = found.generator.module.network
    bound = found.generator.stmt.targets[0] if isinstance(found.generator.stmt, ir.Assign) else None
    if found.argument is not found.generator.call and isinstance(bound, ir.Seq):
        return True  # one of several results: no dict, and what another network takes as it is
    if isinstance(network, ClassInfo):
        forward = network.method("forward")
        return forward is not None and not any(
            isinstance(statement, ir.Return)
            and isinstance(statement.value, (ir.Name, ir.Attr, ir.Const))
            and _bound_to_several(forward, statement.value.path)
            for statement in ir.statements(forward.body)
        )
    return isinstance(network, str) and network not in _SEVERAL


def _bound_to_several(function: ir.Function, path: str | None) -> bool:
    return path is None or any(
        isinstance(statement, ir.Assign)
        and isinstance(statement.value, (ir.Seq, ir.DictDisplay, ir.Comp))
        and any(target.path == path for target in statement.targets)
        for statement in ir.statements(function.body)
    )


def _still_that(
    facts: FunctionFacts, path: str, generator: Forward, discriminator: Forward, order: dict[int, int]
) -> bool:
    """Whether the name is not bound anew between the generator's forward and the discriminator's."""
    first, until = order[id(generator.stmt)], order[id(discriminator.stmt)]
    return first < until and not any(
        target.path == path
        for statement in ir.statements(facts.function.body)
        if first < order[id(statement)] < until
        for target in targets(statement)
    )


def _made_for_this(functions: list[FunctionFacts], generator: Forward, backward: Backward) -> ir.Stmt | None:
    """The generating statement, if no other backward and nobody outside wants the generator's graph."""
    if (
        not isinstance(generator.stmt, ir.Assign)
        or generator.result.returned
        or generator.result.escaped
        or generator.result.stored
    ):
        return None
    others = (b for facts in functions for b in facts.backwards if b is not backward)
    return None if any(generator.site in other.tokens for other in others) else generator.stmt


def _discards(
    functions: list[FunctionFacts],
    facts: FunctionFacts,
    optimizer: str,
    module: str,
    start: int,
    order: dict[int, int],
) -> bool:
    """Whether the generator's gradients are zeroed before its optimizer steps: here, next time round, or elsewhere."""
    events = [
        (order[id(statement)], kind)
        for statement, kind in _optimizer_events(facts.function, optimizer, module)
    ]
    if events:
        after = [event for event in events if event[0] > start]
        return min(after or events)[1] == "zero"
    found = False
    for other in functions:
        kinds = [kind for _, kind in _optimizer_events(other.function, optimizer, module)]
        if kinds:
            found = True
            if kinds[0] != "zero":
                return False
    return found


def _optimizer_events(
    function: ir.Function, optimizer: str, module: str, through: bool = True
) -> Iterator[tuple[ir.Stmt, str]]:
    """Where an optimizer, or its module, is zeroed and stepped, in source order.

    `through`: also where a method of the same object that only zeroes is called, `self.reset_grad()`.
    """
    for statement in ir.statements(function.body):
        for call in ir.own_parts(statement):
            if not isinstance(call, ir.Call) or not isinstance(call.func, ir.Attr):
                continue
            paths = [call.func.base.path, *(argument.path for argument in call.args[:1])]
            names = {last(path) for path in paths if path is not None}
            if call.method == "zero_grad" and names & {optimizer, module}:
                yield statement, "zero"
            elif call.method == "step" and optimizer in names:
                yield statement, "step"
            elif through and _only_zeroes(function, call, optimizer, module):
                yield statement, "zero"


def _only_zeroes(function: ir.Function, call: ir.Call, optimizer: str, module: str) -> bool:
    """Whether a call is of a method beside this one that zeroes the optimizer's gradients, whatever happens."""
    if function.cls is None or not isinstance(call.func, ir.Attr) or not function.params:
        return False
    method = function.cls.methods.get(call.method)
    if method is None or method is function or call.func.base.path != function.params[0].name:
        return False
    events = list(_optimizer_events(method, optimizer, module, through=False))
    kinds = {kind for _, kind in events}
    return kinds == {"zero"} and any(statement in method.body for statement, _ in events)


def _given(call: ir.Call) -> tuple[ir.Expr, ...]:
    return (*call.args, *(value for _, value in call.keywords))
