from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from gpulint.analysis.asked import Asked
from gpulint.analysis.domain.values import in_text_order
from gpulint.analysis.evaluate.consumers import Use, consumers
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Class, Function
from gpulint.analysis.queries.effects import uses_since_made
from gpulint.analysis.queries.grad_mode import grad_at_entry, grad_mode
from gpulint.analysis.queries.graphs.backwards import is_true
from gpulint.analysis.queries.networks.forwards import forwards
from gpulint.analysis.queries.networks.trained import frozen, of_unseen_package, switches_weights
from gpulint.analysis.queries.raises import old_torch
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.syntax.flow import Flow
from gpulint.analysis.syntax.nodes import arguments, dotted, keyword, last_name
from gpulint.answers import Answer, Question, left_open, proven, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.rule import AddImport, Claimed, Cost, RelatedNode, Remove, Repair, Replace, Report, Rule, Wrap

_MODE_WORDS = frozenset("no_grad inference_mode enable_grad set_grad_enabled".split())
_SWITCHES = frozenset(
    "requires_grad require_grad requires_grads required_grad require_grads requires_gradient requires_gard".split()
)
_LOSES_GRAPH = "code that counts on the graph of a result in that block breaks"

_WHY = {
    "bare": "`{name}()` as a statement makes a context manager and drops it: grad mode stays as it was",
    "uncalled": "`with {name}:` is given the class, not a context manager, and raises as soon as it is reached",
    "class": "`no_grad` on the class `{name}` covers its constructor only; its methods run with grad enabled",
    "volatile": "`volatile=True` has had no effect since torch 0.4: the forward saves its activations",
}


class IneffectiveGradMode(Rule):
    """
    ## What it does
    Finds grad modes that never take effect: `torch.no_grad()` as a statement of its own, `with torch.no_grad:` without
    the call, the decorator on a class, and `volatile=True`.

    So are networks frozen in name only: `net.requires_grad = False`, where `net` is a module, sets an attribute that nothing
    reads, and so does a misspelt `p.require_grad = False`. `net.requires_grad_(False)` freezes.

    ## Why is this bad
    The code reads as if nothing were recorded, and every activation is. `no_grad` works as a context manager or as a
    decorator of a function; made and dropped, it does nothing.

    ## What it costs
    What `no_grad` would have saved: a forward of a 4-layer language model peaks at 1.56 GiB with grad and at 1.15 GiB
    under `no_grad`, 1.36 times as much (NVIDIA H200, torch 2.11).

    A head trained with Adam on 8 linear layers of width 1,024 that are frozen in name only peaks at 162.32 MiB, on ones that
    are frozen at 38.19 MiB, and holds 128.28 instead of 32.19 MiB after a step. A network that is trained through 8 such
    layers holds 128.12 instead of 96.09 MiB: the gradients of their weights.

    ## Example
    ```python
    import torch

    def predict(model: torch.nn.Module, inputs):
        torch.no_grad()
        return model(inputs)
    ```

    ## Use instead
    ```python
    import torch

    def predict(model: torch.nn.Module, inputs):
        with torch.no_grad():
            return model(inputs)
    ```

    ## Fix safety
    Adding the missing call to `with torch.no_grad:` is safe, except where something catches the error that it raises now.
    Putting the rest of the block under `with torch.no_grad():` is unsafe: results lose their graph, as intended, and code
    that counts on it breaks. That is also the cure for `volatile=True`: dropped alone it would leave grad on. Nothing is
    offered where that code calls `backward()`, at module level, nor for a `volatile=True` under an `if`. Nor for what is frozen
    in name only: to freeze it changes what is trained.
    """

    code = "GPU204"
    name = "ineffective-grad-mode"
    runtime_claim = Claim("guard")
    doubts = True
    triggers = (
        (b"torch",),
        (
            b"no_grad:", b"inference_mode:", b" torch.no_grad()\n", b" torch.no_grad() ", b" no_grad()\n", b" no_grad() ",
            b"grad()\nclass", b"grad\nclass", b"mode()\nclass", b"mode\nclass", b"\ntorch.no_grad()", b"\tno_grad()", b"\r\n",
            b"\ttorch.no_grad()", b" inference_mode()", b" torch.inference_mode()", b"volatile", b"enable_grad()",
            b"th.no_grad()", b"torch.no_grad\n", b"inference_mode(True)", b"grad()  #", b".requires_grad = False",
            b".requires_grad=False", b".require_grad", b".requires_grads", b".required_grad", b"_gradient = False", b"_gard",
        ),
    )  # fmt: skip

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for function in (asked.file.body, *asked.file.functions):
            if function.words & _MODE_WORDS:
                yield from _in_blocks(asked, function)
            if "volatile" in function.words:
                yield from _volatile(asked, function)
            if function.words & _SWITCHES:
                yield from _frozen_in_name(asked, function)
        for cls in asked.file.classes:
            yield from _decorated_class(asked, cls)


def _mode(asked: Asked, node: ast.AST, frame: Frame) -> str:
    """The library's grad mode that an expression names or calls: `off` or `on`; empty where it is none."""
    named = node.func if isinstance(node, ast.Call) else node
    if not isinstance(named, (ast.Name, ast.Attribute)):
        return ""
    value = asked.evaluator.value_of(named, frame)
    row = asked.evaluator.table.function(value.ref) if value.kind == "library" else None
    if row is None or row.gives != "context" or not row.mode:
        return ""
    return "off" if row.mode == "off" else "on"


def _in_blocks(asked: Asked, function: Function) -> Iterator[Claimed]:
    """Contexts that a statement makes and drops, or names without calling."""
    frame, flow = asked.root(function), function.flow
    for statement, block in list(flow.blocks.items()):
        if isinstance(statement, ast.Expr) and _is_bare(asked, statement.value, frame):
            after = block.statements[block.statements.index(statement) + 1 :]
            rest, entry = () if function.is_module else tuple(after), _at_entry(asked, function)
            yield _claim(asked, "bare", statement.value, function, entry, rest)
        for item in getattr(statement, "items", ()):
            expr = item.context_expr
            if not isinstance(expr, ast.Call) and _mode(asked, expr, frame):
                yield _claim(asked, "uncalled", expr, function, _at_entry(asked, function))


def _is_bare(asked: Asked, node: ast.expr, frame: Frame) -> bool:
    """A dropped `enable_grad()` costs nothing: where it is wanted, backward says so."""
    given = arguments(node) if isinstance(node, ast.Call) else []
    return all(isinstance(one, ast.Constant) for one in given) and _mode(asked, node, frame) == "off"


def _at_entry(asked: Asked, function: Function) -> Iterator[Answer]:
    found = grad_at_entry(asked.evaluator, function)
    if found.mode == "off":
        yield refuted(Question.GRAD, "every caller switches grad off", found.by)
    else:
        yield proven(Question.GRAD, "grad is on here")


def _decorated_class(asked: Asked, cls: Class) -> Iterator[Claimed]:
    outer = asked.root(cls.parent or asked.file.body)
    for node in cls.node.decorator_list:
        if _mode(asked, node, outer) != "off":
            continue
        answer = proven(Question.GRAD, "its methods run as they would without it")
        yield _claim(asked, "class", node, cls.body, (answer,), name=cls.name)


# --- inputs of an old torch ------------------------------------------------------------------------------------------


def _volatile(asked: Asked, function: Function) -> Iterator[Claimed]:
    """Inputs that say `volatile=True`, those of one forward together."""
    frame, flow = asked.root(function), function.flow
    found: list[tuple[ast.Call, tuple[Use, ...]]] = []
    for call in flow.calls.get("Variable", ()):
        if is_true(keyword(call, "volatile")):
            if asked.evaluator.value_of(call.func, frame).full_name.startswith("torch."):
                found.append((call, tuple(consumers(asked.evaluator, call, frame, "graph"))))
    runs = {flow.statement_of(one.call) for one in forwards(asked.evaluator, function)}
    for together in _of_one_forward(flow, found, runs):
        call, _ = together[0]
        also = tuple(one for one, _ in together[1:])
        uses = tuple(use for _, several in together for use in several)
        answers = _of_volatile(asked, function, call, uses)
        yield _claim(asked, "volatile", call, function, answers, _from_here_on(function, call), also)


def _of_one_forward(flow: Flow, found: list[Any], runs: set[Any]) -> list[list[Any]]:
    """Those that stand in one block, with no forward in between."""
    groups: list[list[Any]] = []
    for one in found:
        statement = flow.statement_of(one[0])
        before = flow.statement_of(groups[-1][-1][0]) if groups else None
        together = before is not None and flow.blocks[before] is flow.blocks[statement]
        between = range(flow.order[before], flow.order[statement]) if together else ()
        if together and not any(flow.order[run] in between for run in runs):
            groups[-1].append(one)
        else:
            groups.append([one])
    return groups


def _of_volatile(asked: Asked, function: Function, call: ast.Call, uses: tuple[Use, ...]) -> Iterator[Answer]:
    mode = grad_mode(asked.evaluator, call, asked.root(function))
    if mode.mode == "off":
        yield refuted(Question.GRAD, "grad is off here", mode.by)
    if any(use.role == "backward" for use in uses):
        yield refuted(Question.BACKWARD, "a backward goes through what it is part of")
    fed = [use for use in uses if use.role == "fed"]
    if not fed:
        yield refuted(Question.GRAPH, "a target or a constant: no network keeps activations for it")
    yield proven(Question.GRAD, "grad is on here")
    if mode.mode == "mixed" and not mode.certain:
        yield left_open(Question.GRAD, "some of those who call it switch grad off", mode.by)
    yield from filter(None, (old_torch(asked.evaluator, asked.file),))
    yield from reached(asked.evaluator, function)
    networks = [asked.evaluator.value_of(use.node.func, use.frame) for use in fed]
    if networks and all(of_unseen_package(asked.evaluator, one) for one in networks):
        yield left_open(Question.TRAINED, "the network is another package's, which may have frozen it")


# --- frozen in name only ---------------------------------------------------------------------------------------------


def _frozen_in_name(asked: Asked, function: Function) -> Iterator[Claimed]:
    frame, flow = asked.root(function), function.flow
    misspelt = asked.evaluator.table.knows("misspelt")
    for one in flow.definitions_of("assign"):
        target, off = one.node, isinstance(one.value, ast.Constant) and one.value.value is False
        if off and isinstance(target, ast.Attribute) and target.attr in _SWITCHES:
            is_misspelt = target.attr in misspelt
            answers = until_refuted(_of_switch(asked, target, frame, is_misspelt))
            report = partial(_idle_report, asked, target, is_misspelt)
            yield Claimed(target, ast.unparse(target), answers, report)


def _of_switch(asked: Asked, target: ast.Attribute, frame: Frame, misspelt: bool) -> Iterator[Answer]:
    value = asked.evaluator.value_of(target.value, frame)
    name = ast.unparse(target.value)
    if any(target.attr in cls.methods for cls in asked.file.classes):
        yield refuted(Question.MEANT, f"a class here has made `{target.attr}` for itself")
    if value.kind == "module" or (misspelt and value.kind == "parameter"):
        yield proven(Question.TRAINED, f"a {value.kind} has no switch `{target.attr}`")
    else:
        yield refuted(Question.TRAINED, f"`{name}` is no network, as far as it is seen")
    yield from (left_open(Question.TRAINED, one.clause) for one in value.assumptions)
    origins = in_text_order(value.origins)
    uses = [use for one in origins for use in uses_since_made(asked.evaluator, one)]
    switched = any(switches_weights(asked.evaluator, use) is not None for use in uses)
    if switched or frozen(asked.evaluator, value) is not None:
        yield refuted(Question.TRAINED, f"`{name}` is frozen all the same")
    ran = {grad_mode(asked.evaluator, use.node, use.frame).mode for use in uses if use.role == "called"}
    if ran == {"off"}:
        yield refuted(Question.GRAD, f"`{name}` only runs with grad switched off")
    if "on" in ran:
        yield proven(Question.GRAD, f"`{name}` runs with grad on")


def _idle_report(asked: Asked, target: ast.Attribute, misspelt: bool) -> Report:
    text = asked.source(target)
    why = "torch has no attribute of this name" if misspelt else "a module has no attribute of this name"
    return Report(
        target,
        f"`{text} = False` freezes nothing: {why}, and the parameters require grad as before",
        "freeze with `.requires_grad_(False)`, which a module hands on to its parameters",
        Cost(
            "gradients of all the weights; where nothing before them wants a gradient the activations, and the optimizer's states",
            "162.32 MiB against 38.19 MiB at the peak for a head on 8 linear layers; H200, torch 2.11",
        ),
    )


# --- reports and repairs ----------------------------------------------------------------------------------------------


def _claim(
    asked: Asked,
    what: str,
    at: ast.expr,
    function: Function,
    answers: Iterable[Answer],
    rest: tuple[Any, ...] = (),
    also: tuple[ast.Call, ...] = (),
    name: str = "",
) -> Claimed:
    spelled = dotted(at.func if isinstance(at, ast.Call) else at) or asked.source(at)
    name = name or spelled
    cost = Cost(
        "every activation of what runs here, as without this line",
        "1.36 times the forward's peak, 1.56 against 1.15 GiB for a 4-layer language model; H200, torch 2.11",
    )
    report = partial(
        Report,
        at,
        _WHY[what].format(name=name),
        "use it as `with torch.no_grad():` around the code, or as the decorator of the function that runs it",
        cost,
        related=tuple(RelatedNode("and so has this", other) for other in also),
        repair=partial(_repair, asked, what, at, name, function, rest),
    )
    return Claimed(at, name, until_refuted(answers), report)


def _from_here_on(function: Function, call: ast.Call) -> tuple[Any, ...]:
    """The statements from this one to the end of the function or of the loop's body that it stands in directly: under an
    `if`, the input is volatile in one phase only, and what follows serves the other as well."""
    statement = function.flow.statement_of(call)
    block = function.flow.blocks[statement]
    if function.is_module or function.flow.yields or not (block.is_rounds or block.owner is function.node):
        return ()
    return tuple(block.statements[block.statements.index(statement) :])


def _repair(
    asked: Asked, what: str, at: ast.expr, name: str, function: Function, rest: tuple[Any, ...]
) -> Repair | None:
    import libcst as cst

    from gpulint.fix.nodes import no_grad_with

    node = asked.node(at)
    if what == "uncalled":
        around = function.flow.around(at)
        guarded = any(isinstance(one.owner, ast.Try) and one.arm == "body" for one in around)
        why = "the code beneath has never run: what it raises is caught" if guarded else ""
        return Repair.unless(why, "call it", (Replace(node, cst.Call(node)),))  # type: ignore[arg-type]
    goes_back = any(last_name(one.func) in ("backward", "manual_backward") for one in _calls_in(rest))
    if what not in ("volatile", "bare") or not rest or goes_back:
        return None
    lines = tuple(asked.line(statement) for statement in rest)
    if what == "bare":
        if not isinstance(node, cst.Call):
            return None
        bare = (Remove(asked.node(function.flow.statement_of(at))), Wrap(lines, no_grad_with(name)))
        return Repair("unsafe", f"run the rest of the block under `{name}()`", bare, _LOSES_GRAPH)
    if old_torch(asked.evaluator, asked.file) is not None:
        return None
    name, missing = asked.torch_name("no_grad", rest[0])
    if not name:
        return None
    imports = (AddImport(missing),) if missing else ()
    changes = (*_volatile_arguments(asked, rest), Wrap(lines, no_grad_with(name)), *imports)
    why = f"{_LOSES_GRAPH}, and a torch that knows `volatile` has no `no_grad`"
    return Repair("unsafe", f"run the rest of the block under `{name}()`", changes, why)


def _calls_in(statements: tuple[Any, ...]) -> Iterator[ast.Call]:
    return (one for each in statements for one in ast.walk(each) if isinstance(one, ast.Call))


def _volatile_arguments(asked: Asked, statements: tuple[Any, ...]) -> Iterator[Remove]:
    """Every `volatile=True` of the block: under no_grad none of them is left to say."""
    for call in _calls_in(statements):
        if keyword(call, "volatile") is not None:
            for argument in asked.node(call).args:  # type: ignore[attr-defined]
                if argument.keyword is not None and argument.keyword.value == "volatile":
                    yield Remove(argument)
