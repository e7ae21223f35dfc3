"""Calls that run in every step: whether they do, where a helper makes them, and what they may be there for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import is_periodic, targets
from gpulint.analysis.questions.repeats.intervals import every_how_many
from gpulint.analysis.torch.backward import runs_backward
from gpulint.analysis.torch.frameworks import TRAINING_HOOKS
from gpulint.analysis.torch.names import MEASURES_MEMORY, MEASURING

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import HotCall, Loop
    from gpulint.analysis.file.program import FileAnalysis


def settle_call(file: FileAnalysis, call: HotCall) -> None:
    """Say of a watched call how often it is made, what it may be there for, and what leaves it open whether it matters."""
    call.every = every_how_many(call)
    call.seldom = _why_seldom(file, call)
    if call.per_step:
        call.minor = call.every != 1 or _evaluates(file, call)
        call.unproven = why_kept(file, call)
        call.doubt = why_cheap(file, call) if "synchronize" not in call.name else ""


def _why_seldom(file: FileAnalysis, call: HotCall) -> str:
    """In a clause, why a watched call goes by no steps; empty where it does."""
    if call.in_handler:
        return "it makes up for something that failed"
    if call.every is None:
        return "it is made under a condition that does not go by steps, or is off by default"
    if file.evidence[call.function].words & MEASURES_MEMORY:
        return "memory is measured here, and each figure shall begin from the same state"
    if call.every != 1 and _needs_collector(file, call):
        return "something here makes reference cycles, or keeps the collector from running by itself"
    if call.every != 1 and _ends_phase(file, call):
        return "it comes with an evaluation or a checkpoint, that makes the step another"
    if call.via is not None and _is_told_there(file, call.function, call.via):
        return "it is told in the forward that makes it"
    if call.loops:
        return _why_no_step(file, call, call.loops[-1])
    if _is_phase(file, call.function, training=True):
        return "the function is a phase of many steps, an epoch as a rule"
    if not file.runs_per_step(call.function) and not _is_forward(file, call.function):
        return "it stands in no loop, and the function is no step of one"
    return "the function makes what it trains: it is a run, and no step" if builds(call.function) else ""


def _why_no_step(file: FileAnalysis, call: HotCall, loop: Loop) -> str:
    """In a clause, why a round of the loop around a call is no step; empty where it is one."""
    made_here = loop.assigned & file.evidence[call.function].modules
    if any(inner.steps and _is_inside(inner, loop) for inner in file.loops.values()):
        return "the steps are those of a loop inside"
    helper = call.via is not None and not (loop.over_data or loop.backwards or loop.steps)
    if helper or _fits(loop.stmt):
        return "each round is a run of its own, of a model or a category"
    if _tries_again(loop.stmt):
        return "the loop tries again what has failed"
    if _runs_phases(file, loop.stmt):
        return "each round is a phase of many steps"
    if MEASURING.search(call.function.name) and _is_over_settings(loop):
        return "each round is measured by a run of its own"
    if not loop.is_step_loop:
        return "no network runs in the rounds of the loop, and no optimizer steps"
    if made_here or _trains_anew(file, call.function, loop.stmt):
        return "each round makes its model anew: it is no step"
    if _is_offloading(call.function, loop.stmt):
        return "the loop is the frugal one of two ways: the time is what it is for"
    return ""


def _ends_phase(file: FileAnalysis, call: HotCall) -> bool:
    """Whether the conditions around a call let more be done in these rounds than a step: a loop, a forward, an evaluation, a
    checkpoint; or something out of sight that is given a network."""
    block = call.loops[-1].stmt.body if call.loops else call.function.body
    rounds = [one for one in block if call.stmt in ir.statements([one])]
    if any(isinstance(one, (ir.For, ir.While)) for one in ir.statements(rounds)):
        return True
    own = {one.name: one for one, callers in file.called_from.items() if call.function in callers}
    for _, made in ir.calls(rounds):
        callee, full = own.get(made.method), file.names.qualify(made.func.path or "") or ""
        if (callee is not None and _is_phase(file, callee)) or "save" in made.method:
            return True
        if callee is None and not full.startswith("torch."):
            paths = (made.func.path, *(arg.path for arg in made.args))
            if any(path is not None and file.treated_as_module(call.function, path) for path in paths):
                return True
    return False


def _is_forward(file: FileAnalysis, function: ir.Function) -> bool:
    """Whether a function is the forward of a module, of which each step of whoever runs it has one, if not several."""
    info = file.class_of(function)
    return info is not None and info.is_module and function.name == "forward"


def _is_told_there(file: FileAnalysis, function: ir.Function, helper: ir.Function) -> bool:
    """Whether a call that a forward makes is told in that forward with as much reason as where the network is run."""
    home: FileAnalysis = helper.home
    return _is_forward(home, helper) and (_is_forward(file, function) or _is_training_step(home, helper))


def _is_inside(inner: Loop, outer: Loop) -> bool:
    """Whether a loop stands in another, however deep."""
    above = inner.parent
    while above is not None and above is not outer:
        above = above.parent
    return above is outer


def _tries_again(loop: ir.Stmt) -> bool:
    """`while True: try: return run() except …: size //= 2`: a loop that ends with the first round that succeeds."""
    for statement in loop.blocks()[0] if loop.blocks() else []:
        if isinstance(statement, ir.Try) and statement.handlers:
            ends = _ends(statement.body) or _ends(statement.orelse)
            after = loop.blocks()[0][loop.blocks()[0].index(statement) + 1 :]
            goes_on = any(not _ends(handler.body) for handler in statement.handlers)
            if goes_on and (ends or any(map(_is_end, after)) or _settles(loop, statement)):
                return True
    return False


def _ends(block: list[ir.Stmt]) -> bool:
    return bool(block) and _is_end(block[-1])


def _is_end(statement: ir.Stmt) -> bool:
    """Whether a statement leaves the loop for good."""
    return isinstance(statement, ir.Return) or (
        isinstance(statement, ir.Jump) and statement.kind in ("break", "raise")
    )


def _settles(loop: ir.Stmt, attempt: ir.Try) -> bool:
    """`while not done: try: …; done = True`."""
    if not isinstance(loop, ir.While):
        return False
    asked = {part.path for part in ir.walk(loop.test) if isinstance(part, (ir.Name, ir.Attr))}
    return any(
        isinstance(statement, ir.Assign)
        and isinstance(statement.value, ir.Const)
        and any(target.path in asked for target in statement.targets)
        for statement in (*attempt.body, *attempt.orelse)
    )


def _runs_phases(file: FileAnalysis, loop: ir.For | ir.While) -> bool:
    """Whether one round is a whole phase: it calls something that runs networks in loops over data of its own, or so
    many steps, and not only in every so many rounds."""
    return any(
        _is_phase(file, callee)
        for callee, callers in file.called_from.items()
        if _function_of(file, loop) in callers and callee.name in set(_called_in(loop.body))
    )


def _function_of(file: FileAnalysis, loop: ir.Stmt) -> ir.Function | None:
    known = file.loops.get(id(loop))
    return known.function if known is not None else None


def _called_in(block: list[ir.Stmt]) -> Iterator[str]:
    """What a block calls whenever it runs, or by a condition that may always hold."""
    for statement in block:
        yield from (call.method for call in ir.own_calls(statement))
        periodic = isinstance(statement, ir.If) and is_periodic(statement.test)
        for inner in statement.blocks()[1 if periodic else 0 :]:
            yield from _called_in(inner)


def _is_phase(
    file: FileAnalysis,
    function: ir.Function,
    seen: frozenset[ir.Function] = frozenset(),
    training: bool = False,
) -> bool:
    """Whether an optimizer takes steps in loops of a function, or of one that it calls: it is many of them. Without
    `training`, also whether it goes through data in a loop."""
    if function in seen or len(seen) > 3:
        return False
    for statement in ir.statements(function.body):
        loop = function.home.loops.get(id(statement))
        if loop is not None and loop.steps:
            return True
        if loop is not None and not training and loop.over_data and loop.forwards and not loop.backwards:
            return True
    return any(
        _is_phase(file, callee, seen | {function}, training)
        for callee, callers in file.called_from.items()
        if function in callers
    )


# Who reads these sees what is reserved, or what waits for the collector.
_FIGURES = frozenset(
    "memory_reserved max_memory_reserved memory_cached max_memory_cached mem_get_info memory_stats memory_summary "
    "memory_snapshot nvmlDeviceGetMemoryInfo".split()
)
# Others that take memory on the same GPU, which torch's cache would keep from them.
_NEIGHBOURS = frozenset(
    "tensorflow jax cupy cudf cuml numba pycuda faiss vllm sglang ray onnxruntime tensorrt paddle mxnet multiprocessing".split()
)
# Libraries of sparse convolutions: no two batches of points are of one size, and MinkowskiEngine's documentation asks for an
# emptied cache against what that leaves in pieces.
_OF_POINTS = ("MinkowskiEngine", "torchsparse", "spconv")
_IMPORTS_POINTS = re.compile(
    rb"^[ \t]*(?:import|from)[ \t]+(?:%s)\b" % "|".join(_OF_POINTS).encode(), re.MULTILINE
)
_PROFILERS = frozenset({"record_function", "export_chrome_trace", "tensorboard_trace_handler"})
_CYCLES = frozenset({"create_graph", "weakref", "disable", "freeze", "set_threshold"})
_CLEANING = frozenset({"collect", "empty_cache", "synchronize", "ipc_collect"})


def why_kept(file: FileAnalysis, call: HotCall) -> str:
    """In a clause, what a call that cleans up in every step may be there for; empty where nothing speaks for it."""
    words = {word for evidence in file.evidence.values() for word in evidence.words}
    if _needs_collector(file, call):
        return "something here makes reference cycles, or has the collector wait"
    if words & _FIGURES:
        return "the figures of memory that the program reads change"
    shared = {full.partition(".")[0] for full in file.names.imports.values()} & _NEIGHBOURS
    if shared:
        return f"`{min(shared)}` may need the memory that the cache keeps"
    dropped = _dropped_before(call.function.body, call.stmt)
    if dropped is not None:
        return f"it gives back at once what `del {dropped}` has freed"
    return ""


def _needs_collector(file: FileAnalysis, call: HotCall) -> bool:
    """Whether a call runs the collector where something makes reference cycles, or where it is kept from running by itself."""
    words = {word for evidence in file.evidence.values() for word in evidence.words}
    here = words & _CYCLES & file.evidence[call.function].words
    return call.name.endswith("collect") and bool(here | words & {"create_graph"})


def why_cheap(file: FileAnalysis, call: HotCall) -> str:
    """In a clause, why a call in every round may not matter beside the rest of the round; empty where the round is a step
    of training."""
    if _goes_through_points(file):
        return "its batches are of sparse points, which are never of one size: what the cache keeps may not fit the next"
    if file.evidence[call.function].words & _PROFILERS:
        return "a profiler watches these steps, of which there are few"
    if _reads_figures_beside(call):
        return "a figure of memory is read beside it, which shall begin from the same state in every step"
    inner = call.loops[-1] if call.loops else None
    if (
        inner is not None
        and not (inner.backwards or inner.steps)
        and _frees_for_next_network(file, call, inner)
    ):
        return "it lets go of something large right before another network runs in the same round"
    if any(_goes_on_after_failure(loop) for loop in call.loops):
        return "a step that fails is passed over beside it: sizes that differ may run out of memory, and what fails last is freed"
    if (
        call.minor
        or any(loop.backwards or loop.steps for loop in call.loops)
        or _is_training_step(file, call.function)
    ):
        return ""
    return "how long the rest of a round takes, which does not train, the code does not say"


def _evaluates(file: FileAnalysis, call: HotCall) -> bool:
    """Whether the steps are those of an evaluation: one network runs on each batch, and nothing trains."""
    inner = call.loops[-1] if call.loops else None
    trains = any(loop.backwards or loop.steps for loop in call.loops) or _is_training_step(
        file, call.function
    )
    return inner is not None and inner.over_data and inner.forwards == 1 and not trains


def _goes_through_points(file: FileAnalysis) -> bool:
    """Whether the program has sparse points to go through."""
    own = any(full.partition(".")[0] in _OF_POINTS for full in file.names.imports.values())
    return own or (file.project is not None and file.project.contains(file.filename, _IMPORTS_POINTS))


def _goes_on_after_failure(loop: Loop) -> bool:
    """`try: loss = step(batch) … except Exception: print("skipped")`, in a loop of steps."""
    return any(
        isinstance(statement, ir.Try)
        and any(not _ends(handler.body) and not _raises(handler.body) for handler in statement.handlers)
        and any(call.method in ("backward", "step") for _, call in ir.calls(statement.body))
        for statement in loop.stmt.body
    )


def _raises(block: list[ir.Stmt]) -> bool:
    return any(isinstance(one, ir.Jump) and one.kind == "raise" for one in ir.statements(block))


def _is_training_step(file: FileAnalysis, function: ir.Function) -> bool:
    """Whether a function trains: it goes backward, takes an optimizer's step, or gives a framework the loss to do so."""
    facts, summary = file.facts.get(function), file.summaries.get(function)
    if (facts is not None and facts.has_backward) or (summary is not None and summary.steps > 0):
        return True
    if function.name in TRAINING_HOOKS or file.framework_backward(function):
        return True
    return _is_forward(file, function) and any(map(_trains_something, _files_making(file, function)))


def _files_making(file: FileAnalysis, function: ir.Function) -> Iterator[FileAnalysis]:
    """The file of a method and those of its project that make objects of its class."""
    yield file
    info = file.class_of(function)
    made = info.cls.methods.get("__init__") if info is not None else None
    if made is not None and file.project is not None:
        yield from file.project.files_calling(file.filename, made) or ()


def _trains_something(file: FileAnalysis) -> bool:
    """Whether a file goes backward, or has a framework do so."""
    return any(
        function.name in TRAINING_HOOKS or any(map(runs_backward, evidence.called))
        for function, evidence in file.evidence.items()
    )


_READS_FIGURES = frozenset(
    "memory_allocated memory_reserved max_memory_allocated max_memory_reserved mem_get_info".split()
)


def _block_of(block: list[ir.Stmt], wanted: ir.Stmt) -> list[ir.Stmt]:
    """The block that a statement stands in."""
    if wanted in block:
        return block
    inner = (one for statement in block for one in statement.blocks())
    return next((found for one in inner if (found := _block_of(one, wanted))), [])


def _reads_figures_beside(call: HotCall) -> bool:
    """Whether the statements around it put a figure of memory by: `used.append(memory_allocated())`."""
    return any(
        inner.method in _READS_FIGURES
        for statement in _block_of(call.function.body, call.stmt)
        if isinstance(statement, ir.Assign)
        or any(outer.method in ("append", "add", "update") for outer in ir.own_calls(statement))
        for inner in ir.own_calls(statement)
    )


def _frees_for_next_network(file: FileAnalysis, call: HotCall, loop: Loop) -> bool:
    """`del logits; empty_cache(); score(reference, x)`, in a loop that only computes: the next takes what the cache would keep."""
    if _dropped_before(loop.stmt.body, call.stmt) is None:
        return False
    facts = file.facts.get(call.function)
    forwards = {id(forward.call) for forward in facts.forwards} if facts is not None else set()
    behind = False
    for statement in ir.statements(loop.stmt.body):
        if behind and any(
            id(one) in forwards
            or any(
                arg.path is not None and file.treated_as_module(call.function, arg.path) for arg in one.args
            )
            for one in ir.own_calls(statement)
        ):
            return True
        behind |= statement is call.stmt
    return False


def _dropped_before(block: list[ir.Stmt], wanted: ir.Stmt) -> str | None:
    """The name that the statements before this one delete, with nothing but cleaning in between."""
    for position, statement in enumerate(block):
        if statement is wanted:
            for earlier in reversed(block[:position]):
                if isinstance(earlier, ir.Delete):
                    return next((target.path for target in earlier.targets if target.path), None)
                calls = ir.own_calls(earlier)
                if not isinstance(earlier, ir.ExprStmt) or not all(c.method in _CLEANING for c in calls):
                    return None
            return None
        for inner in statement.blocks():
            found = _dropped_before(inner, wanted)
            if found is not None:
                return found
    return None


def _is_over_settings(loop: Loop) -> bool:
    """`for mode in modes:`: neither batches nor so many repetitions of one thing."""
    if loop.over_data or loop.backwards or loop.steps or not isinstance(loop.stmt, ir.For):
        return False
    return isinstance(loop.stmt.iterable, (ir.Name, ir.Attr, ir.Seq, ir.Op))


def _fits(loop: ir.Stmt) -> bool:
    """Whether each round fits a model: `model.fit(x, y)`."""
    return any(call.method == "fit" for block in loop.blocks() for _, call in ir.calls(block))


def builds(function: ir.Function) -> bool:
    """Whether a function makes the model or the optimizer that it steps with: it is a run, not a step of one.

    `model = unwrap(self.model)` and `optimizer = self.optimizers()` make none.
    """
    evidence = function.home.evidence[function]
    names = function.home.names
    for statement in ir.statements(function.body):
        value = statement.value if isinstance(statement, ir.Assign) else None
        if not isinstance(value, ir.Call):
            continue
        path = value.func.path or ""
        if (names.qualify(path) or "").startswith("torch.optim.") and "lr_scheduler" not in path:
            return True
        given = {arg.path or "" for arg in value.args}
        handed_on = path.startswith("self.") or given & evidence.modules or any("." in arg for arg in given)
        if not handed_on and {target.path for target in targets(statement)} & evidence.optimizers:
            return True
    return False


def _trains_anew(file: FileAnalysis, function: ir.Function, loop: ir.Stmt) -> bool:
    """Whether a loop calls a function that builds what it trains: `for config in configs: train_one(config)`."""
    called = {call.method for block in loop.blocks() for _, call in ir.calls(block)}
    for callee, callers in file.called_from.items():
        if callee.name in called and function in callers and callee.name != "forward":
            summary = callee.home.summaries.get(callee)
            if summary is not None and (summary.steps or summary.direct_backwards) and builds(callee):
                return True
    return False


def _is_offloading(function: ir.Function, loop: ir.Stmt) -> bool:
    """Whether the loop is the frugal one of two ways: under a flag, its results go to the host; without, they stay.

    The time lost in it is what the mode is for.
    """
    for statement in ir.statements(function.body):
        if isinstance(statement, ir.If) and statement.orelse and _is_flag(statement.test):
            if any(loop in branch for branch in statement.blocks()):
                return any(
                    call.method == "cpu" or (call.method == "to" and _names_host(call))
                    for block in loop.blocks()
                    for _, call in ir.calls(block)
                )
    return False


def _is_flag(test: ir.Expr) -> bool:
    while isinstance(test, ir.Op) and test.op == "not":
        test = test.operands[0]
    return isinstance(test, (ir.Name, ir.Attr))


def _names_host(call: ir.Call) -> bool:
    device = call.argument(0, "device")
    return isinstance(device, ir.Const) and device.value == "cpu"


def made_in(call: HotCall) -> ir.Call | None:
    """The call itself, where a helper makes it."""
    if call.via is None:
        return None
    last = call.name.rpartition(".")[2]
    return next((found for _, found in ir.calls(call.via.body) if found.method == last), None)
