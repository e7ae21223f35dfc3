"""After all functions are followed: what can only be said with the whole file known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.uses import Uses
from gpulint.analysis.file.differentiating import differentiated
from gpulint.analysis.file.facts import (
    DeferredBackward,
    Forward,
    FunctionFacts,
    Hold,
    Loop,
)
from gpulint.analysis.file.gradmode import decorator_name
from gpulint.analysis.file.slots import is_read_back
from gpulint.analysis.file.test_code import imports_runner, is_test_class
from gpulint.analysis.flow.peaks import deferred_backwards, late_releases
from gpulint.analysis.questions.backward.far_backward import freed_far_away
from gpulint.analysis.questions.backward.toward_backward import feeds_backward, rounds_depend
from gpulint.analysis.questions.device.on_host import is_on_host
from gpulint.analysis.questions.grad.foreign import foreign_functions
from gpulint.analysis.questions.grad.phase_flags import evaluates_by_flag
from gpulint.analysis.questions.outlives.collecting import is_metric, is_unread
from gpulint.analysis.questions.outlives.piles import judge
from gpulint.analysis.questions.outlives.rounds import counts_micro_batches, in_one_round, over_members
from gpulint.analysis.torch.backward import WANTS_GRAD
from gpulint.analysis.torch.frameworks import LIGHTNING_WINDOWS
from gpulint.analysis.values.values import (
    LARGE,
    UNSURE_GRAD,
    Grad,
    Kind,
)

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis


def finish(file: FileAnalysis, facts: list[FunctionFacts]) -> None:
    """Complete holds, forwards and backwards with what other functions do to their graphs."""
    foreign = foreign_functions(file)
    wanted = differentiated(file)
    for function in facts:
        evidence = file.evidence[function.function]
        function.role.is_foreign = function.function in foreign
        function.differentiated = function.function in wanted
        function.uses_autograd = (
            bool(evidence.words & WANTS_GRAD)
            or function.differentiated
            or ("register_forward_hook" in evidence.words and not _only_copies(file, function.function))
            or function.grad_at_entry is not Grad.ENABLED
            or _enables_grad(function.function)
            or bool(_derivatives(file, function.function))
            or any(path.endswith(".requires_grad") for path in evidence.stored)
        )
        function.role.is_test = _is_test(file, function.function) or _compares(function.function)
        owner = file.class_of(function.function)
        function.role.is_module_forward = (
            function.function.name == "forward" and owner is not None and owner.is_module
        )
        function.role.entries = _entries(file, function.function)
        uses = Uses(function.function, file.names)
        for hold in function.holds:
            _finish_hold(file, function, hold, uses)
        for forward in function.forwards:
            _finish_forward(file, forward)
        for hold in function.holds:
            hold.rounds.bounded |= over_members(hold) or in_one_round(hold)
            hold.on_host = hold.value.kind is Kind.GRAPH and is_on_host(file, function, hold)
        for forward in function.forwards:
            _finish_training(function, forward)
        function.recurrent = [item.loop for item in function.carried if item.loop is not None]
        fed = {item.path for item in function.carried}
        for hold in function.holds:
            hold.graph.fed_back = hold.place.holder in fed or _fills_next_forward(function, hold)
        _whole_function(function)
        for hold in function.holds:
            hold.rounds.made_in_loop = any(
                loop.forwards or loop.runs or any(loop in f.loops for f in function.forwards)
                for loop in hold.rounds.loops
            )
            inside = [f for f in function.forwards if f.site in hold.value.tokens and f.mode.evaluating]
            hold.graph.under_no_grad_fix = bool(inside) and (
                function.all_evaluation or all(f.mode.loop_is_evaluation for f in inside)
            )
            if (
                hold.graph.state == "device"
                and hold.place.container
                and hold.value.has(LARGE)
                and not hold.rounds.bounded
            ):
                hold.place.pile = judge(file, hold)
                hold.place.unread = is_unread(function, hold)
                hold.place.gathers = is_metric(file, hold.function)
        function.late = late_releases(file, function)
        function.deferred = _of_rounds_apart(file, function)


def _of_rounds_apart(file: FileAnalysis, facts: FunctionFacts) -> list[DeferredBackward]:
    """The backwards that wait for rounds of which each could have its own."""
    found = [one for one in deferred_backwards(facts) if not rounds_depend(file, facts, one)]
    for one in found:
        if rounds_depend(file, facts, one, unseen=True):
            one.doubt = "an object that is not seen may carry what one round computes into the next"
    return found


def _entries(file: FileAnalysis, function: ir.Function) -> tuple[ir.Function, ...]:
    """The functions that nothing in the file calls, from which calls lead here. None where the file's own body
    does, or a command line."""
    found: list[ir.Function] = []
    seen = {function}
    queue = [function]
    while queue:
        current = queue.pop()
        if current is file.module.body or current in file.started:
            return ()
        callers = {caller for caller in file.called_from.get(current, ()) if caller.home is file}
        if not callers - {current}:
            found.append(current)
        queue += [caller for caller in callers if caller not in seen]
        seen |= callers
    return tuple(found)


def _only_copies(file: FileAnalysis, function: ir.Function) -> bool:
    """Whether a file's forward hooks can only be there to look at activations: something detaches, or a script keeps them
    to itself, and nothing differentiates."""
    words = {word for evidence in file.evidence.values() for word in evidence.words}
    looks = function is file.module.body or bool(words & {"detach", "data"})
    return looks and not words & {
        "backward", "autograd", "grad", "requires_grad", "requires_grad_", "loss", "criterion",
    }  # fmt: skip


def _is_test(file: FileAnalysis, function: ir.Function) -> bool:
    """Whether a test runner calls a function. `test_epoch(model, loader)`, which its own file calls, is none."""
    if function.cls is not None:
        return is_test_class(function.cls)
    if file.is_test or imports_runner(file.module):
        return function.name.startswith("test_")
    # In a file that no runner looks into: a try-out that is written like a test.
    needs = [param for param in function.params if param.default is None]
    return function.name.startswith("test_") and not needs and function not in file.started


# What models of physics differentiate for inside their forward: under no_grad they fail.
_DERIVATIVES = frozenset("forces stress stresses virial virials hessian hessians".split())


def _derivatives(file: FileAnalysis, function: ir.Function) -> frozenset[str]:
    """The derivatives that a function, or the class around it, speaks of: `results["forces"]`, `def get_forces`."""
    beside = function.cls.methods.values() if function.cls is not None else (function,)
    found: set[str] = set()
    for method in beside:
        evidence = file.evidence[method]
        found |= (evidence.words | evidence.strings | set(method.name.split("_"))) & _DERIVATIVES
    return frozenset(found)


def _enables_grad(function: ir.Function) -> bool:
    """Whether a decorator switches grad on: its author wants it."""
    return any(decorator_name(item)[1] == "enable_grad" for item in function.decorators)


def _compares(function: ir.Function) -> bool:
    """Whether a function asserts that tensors are equal: it checks the program, whatever it is called."""
    for statement in ir.statements(function.body):
        for part in ir.own_parts(statement):
            if isinstance(part, ir.Call) and (
                part.method in ("assert_close", "assert_allclose", "assert_equal")
                or (isinstance(statement, ir.Check) and part.method == "allclose")
            ):
                return True
    return False


def _finish_hold(file: FileAnalysis, facts: FunctionFacts, hold: Hold, uses: Uses) -> None:
    sites = hold.value.sites
    tokens = hold.place.holder_tokens
    hold.graph.consumed = bool(tokens & file.freed)
    hold.graph.returned = bool(tokens & file.returned)
    hold.graph.escaped = bool(tokens & file.escaped)
    apart = bool(hold.rounds.loops) and not _trains(facts, hold.rounds.loops[-1])
    hold.graph.inference = (
        (apart or not facts.has_backward) and not facts.needs_grad and not facts.uses_autograd
    )
    hold.rounds.per_step = file.runs_per_step(hold.function) or hold.function in file.called_in_data_loop
    owner = file.class_of(hold.function)
    hold.place.in_module = hold.function.name == "forward" and owner is not None and owner.is_module
    hold.rounds.within_step = (
        hold.place.holder_kind == "variable"
        and facts.steps > 0
        and not any(loop.steps for loop in hold.rounds.loops)
    ) or counts_micro_batches(hold)
    hold.graph.only_called_elsewhere = facts.only_called_elsewhere
    hold.place.method_of_module = owner is not None and owner.is_module
    hold.place.never_reset = (
        hold.place.holder_kind == "attribute"
        and not _of_a_local(file, hold)
        and not file.reset_anywhere(hold.place.holder)
    )
    hold.place.read_back = hold.place.in_module and hold.place.how == "item" and is_read_back(hold)
    hold.rounds.bounded |= hold.place.holder_kind == "global" and _emptied_in_loop(file, hold)
    if (kept := _of_trainer(file, hold)) is not None:
        hold.place.of_framework = True
        hold.rounds.bounded |= kept in LIGHTNING_WINDOWS
    if hold.place.holder_kind == "variable":
        found = uses.of(hold.place.holder)
        hold.place.number_uses = found.only_numbers
        hold.place.read = found.any
    open_graph = hold.graph.state == "live" and hold.value.kind is Kind.GRAPH
    if hold.graph.state == "live" and sites & file.freed:
        elsewhere = {f for site in sites & file.freed for f in file.freed_by.get(site, ())}
        if elsewhere - {hold.function}:
            callers = file.called_from.get(hold.function, set())
            through_attribute = bool(sites & file.stored) and not hold.place.in_module
            known = not hold.value.has(UNSURE_GRAD) and (bool(elsewhere & callers) or through_attribute)
            hold.graph.wholly_freed = sites <= file.freed
            hold.graph.state = "freed" if known else "unknown"
        else:
            hold.graph.consumed = True
    elif hold.graph.state == "live" and freed_far_away(file, hold):
        hold.graph.state = "freed"
    hold.graph.to_differentiate = hold.graph.state == "retained" and any(
        backward.autograd_grad and backward.create_graph and sites & backward.tokens
        for backward in facts.backwards
    )
    if (open_graph or hold.graph.to_differentiate) and not hold.graph.consumed and not hold.rounds.bounded:
        hold.graph.feeds_backward = feeds_backward(file, hold)


def _of_trainer(file: FileAnalysis, hold: Hold) -> str | None:
    """`fit_loop.running_loss` of `self.trainer.fit_loop.running_loss`, in a module of Lightning's that has not made its trainer
    itself."""
    info, function = file.class_of(hold.function), hold.function
    if info is None or not info.is_lightning or not function.params:
        return None
    trainer = f"{function.params[0].name}.trainer"
    made = any(trainer in file.evidence[method].stored for method in info.cls.methods.values())
    return (
        hold.place.holder.removeprefix(f"{trainer}.")
        if hold.place.holder.startswith(f"{trainer}.") and not made
        else None
    )


def _fills_next_forward(function: FunctionFacts, hold: Hold) -> bool:
    """Whether the forward that made what is held takes a slot of the holder in the next round, `net(x, *states[i])`: a
    backward that has freed it could not go through it again."""
    for forward in function.forwards:
        if forward.site not in hold.value.tokens or hold.place.how != "item":
            continue
        for argument in forward.call.args:
            inner = argument.value if isinstance(argument, ir.Wrapper) else argument
            if isinstance(inner, ir.Sub) and inner.base.path == hold.place.holder:
                return True
    return False


def _of_a_local(file: FileAnalysis, hold: Hold) -> bool:
    """Whether what holds is an attribute of an object that the function itself has made: it goes with the call."""
    head = hold.place.holder.partition(".")[0].partition("[")[0]
    given = any(param.name == head for param in hold.function.params)
    return (
        not given and head in file.evidence[hold.function].assigned and hold.function is not file.module.body
    )


def _finish_forward(file: FileAnalysis, forward: Forward) -> None:
    if forward.site is None:
        return
    single = frozenset({forward.site})
    if single & file.impossible:
        forward.site = None
        return
    forward.result.freed = bool(single & file.freed)
    forward.result.returned = bool(single & file.returned)
    forward.result.escaped = bool(single & file.escaped)
    forward.result.stored = bool(single & file.stored)
    forward.result.read_only = (
        not forward.result.returned and not forward.result.escaped and not forward.result.stored
    )
    forward.mode.phased = forward.mode.phased or (forward.result.freed and evaluates_by_flag(file, forward))


def _finish_training(facts: FunctionFacts, forward: Forward) -> None:
    forward.mode.after_training = _comes_last(facts, forward)
    # In eval mode, and with results that are only read, zeroing the gradients is left over from the training loop.
    idle = forward.mode.evaluating and forward.result.read_only
    forward.mode.trains_nearby = (
        _trains(facts, forward.loops[-1], not idle) if forward.loops else facts.has_backward
    )


def _comes_last(facts: FunctionFacts, forward: Forward) -> bool:
    """Whether all that the function trains is done when a forward runs, until the next round of the same loop:
    `loss.backward(); optimizer.step(); net.eval(); out = net(x)`."""
    depth = len(forward.loops)
    if not facts.backwards or any(backward.loops[:depth] != forward.loops for backward in facts.backwards):
        return False
    places = {id(statement): n for n, statement in enumerate(ir.statements(facts.function.body))}
    here = places.get(id(forward.stmt), -1)
    return all(places.get(id(backward.stmt), here) < here for backward in facts.backwards)


def _trains(facts: FunctionFacts, loop: Loop, zeroing: bool = True) -> bool:
    """Whether a backward or an optimizer is at work in the loop. `zeroing`: gradients zeroed are enough to say so."""
    return (
        bool(loop.steps or loop.backwards)
        or any(loop in b.loops for b in facts.backwards)
        or (zeroing and any(call.method == "zero_grad" for _, call in ir.calls(loop.stmt.body)))
    )


def _evaluates_alone(facts: FunctionFacts, forward: Forward) -> bool:
    """Whether the outermost loop around a forward only evaluates, in a function that trains elsewhere."""
    if facts.needs_grad or facts.uses_autograd:
        return False
    outermost = forward.loops[0]
    inside = [other for other in facts.forwards if outermost in other.loops]
    loops = {id(loop): loop for other in inside for loop in other.loops}
    return not any(_trains(facts, loop) for loop in loops.values()) and all(
        other.result.read_only and not other.result.freed for other in inside
    )


def _whole_function(facts: FunctionFacts) -> None:
    """Whether grad could be off for the whole function, or for a loop of it, without anyone missing it."""
    needs = facts.has_backward or facts.needs_grad or facts.uses_autograd
    facts.all_evaluation = not needs and all(
        forward.mode.grad is not Grad.ENABLED or forward.mode.evaluating or forward.result.read_only
        for forward in facts.forwards
    )
    if any(forward.result.returned and not forward.mode.evaluating for forward in facts.forwards):
        facts.all_evaluation = False
    for forward in facts.forwards:
        forward.mode.loop_is_evaluation = bool(forward.loops) and (
            not needs or _evaluates_alone(facts, forward)
        )


def _emptied_in_loop(file: FileAnalysis, hold: Hold) -> bool:
    """Whether a function that the loop calls empties what the file keeps under this name."""
    root = hold.place.holder.partition(".")[0].partition("[")[0]
    called = {call.method for loop in hold.rounds.loops for _, call in ir.calls(loop.stmt.body)}
    return any(
        function.name in called and root in file.resets_of(function) for function in file.module.functions
    )
