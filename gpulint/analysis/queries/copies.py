"""Copies of a network's weights, and state dicts that are taken for copies: where they are made, and what becomes of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from gpulint.analysis.domain.values import Value
from gpulint.analysis.evaluate.consumers import ANY, Use, consumers
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import File, Function
from gpulint.analysis.queries.loads import is_saved, restores
from gpulint.analysis.queries.networks.behind import source_of
from gpulint.analysis.syntax.nodes import arguments, called_on, key_of, last_name, names_in

What = Literal["deepcopy", "clone", "network", "alias"]
# What is done to a network that is not run by it; a moving average writes into its parameters.
_NEUTRAL = frozenset(
    "state_dict load_state_dict keys copy eval train to cuda cpu float half requires_grad_ parameters named_parameters buffers named_buffers "
    "zero_grad items values get".split()
)
_HOLDING = frozenset({"bound", "stored", "dropped", "deleted", "tested", "returned"})
_LOOKS = frozenset("len print str repr isinstance bool type id format Compare".split())


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy: `node` makes it, of the weights of `source`; `cloned` is what `.clone()` is called on; `state` the `state_dict()`, None of
    the whole network."""

    what: What
    node: Any
    source: Any
    frame: Frame
    network: Value
    state: Any = None
    cloned: Any = None


def copies(evaluator: Evaluator, file: File) -> Iterator[Copy]:
    """The copies of weights that a file makes, and the state dicts that it keeps."""
    for function in (file.body, *file.functions):
        if function.words & {"state_dict", "deepcopy", "clone"}:
            yield from _in_function(evaluator, function)
        yield from _names(evaluator, function)


def _names(evaluator: Evaluator, function: Function) -> Iterator[Copy]:
    """`best = model` in a loop, where a figure is better than before: another name for what trains on."""
    flow, frame = function.flow, evaluator.root(function)
    for one in flow.definitions_of("assign"):
        value, path = source_of(one, flow)
        if path or key_of(value) is None or not flow.loops(one.statement):
            continue
        tests = [test for test, _ in flow.conditions(one.statement) if isinstance(test, ast.Compare)]
        if any(isinstance(test.ops[0], (ast.Lt, ast.Gt, ast.LtE, ast.GtE)) for test in tests):
            network = evaluator.value_of(value, frame)
            if network.kind == "module" and not network.assumptions:
                yield Copy("alias", value, value, frame, network)


def _in_function(evaluator: Evaluator, function: Function) -> Iterator[Copy]:
    flow, frame = function.flow, evaluator.root(function)
    for call in (*flow.calls.get("deepcopy", ()), *flow.calls.get("copy", ())):
        row = evaluator.row_of(call, frame)
        if row is None or row.does != "copies" or len(call.args) != 1:
            continue
        given = call.args[0]
        value = evaluator.value_of(given, frame)
        state = _state_dict(evaluator, given, frame)
        is_deep = isinstance(call.func, ast.Name) or getattr(call.func, "attr", "") == "deepcopy"
        if state is not None and is_deep:
            network = evaluator.value_of(state.func.value, frame)
            yield Copy("deepcopy", call, state.func.value, frame, network, state)
        elif value.kind == "module" and is_deep:
            yield Copy("network", call, given, frame, value)
    for call in flow.calls.get("state_dict", ()):
        state = _state_dict(evaluator, call, frame)
        if state is None:
            continue
        network = evaluator.value_of(state.func.value, frame)
        if not _is_argument(flow, call):
            yield Copy("alias", call, state.func.value, frame, network, state)
    for whole in flow.of_kind(ast.DictComp, ast.ListComp) if "clone" in flow.calls else ():
        through, cloned = flow.iterated(whole), _cloned(whole)
        weights = flow.unaliased(called_on(through, "items", "values") or through)
        if cloned is not None:
            source = called_on(weights, "state_dict", "parameters", "named_parameters") or weights
            network = evaluator.value_of(source, frame)
            if network.kind in (("parameters", "state") if source is weights else ("module", "unknown")):
                yield Copy("clone", whole, source, frame, network, weights, cloned)


def _state_dict(evaluator: Evaluator, node: Any, frame: Frame) -> Any:
    """`network.state_dict()`, or that of what is not seen; None for anything else, such as an optimizer's."""
    node = frame.flow.unaliased(node)
    network = called_on(node, "state_dict")
    if network is None or arguments(node):
        return None
    return node if evaluator.value_of(network, frame).kind in ("module", "unknown") else None


def _cloned(whole: ast.DictComp | ast.ListComp) -> Any:
    """What is cloned for each round of a comprehension, the name of its loop: `v` of `{k: v.clone() for k, v in …}`; None where more is done."""
    made = whole.elt if isinstance(whole, ast.ListComp) else whole.value
    cloned = inner = called_on(called_on(made, "detach") or made, "clone")
    while on := called_on(inner, "detach") or (getattr(inner, "attr", "") == "data" and inner.value):
        inner = on
    return cloned if isinstance(inner, ast.Name) else None


def _is_argument(flow: Any, node: Any) -> bool:
    """Whether a state dict goes right into a call, or is looked at in its statement."""
    given = (ast.Call, ast.keyword, ast.Attribute, ast.Starred)
    return isinstance(flow.parents.get(node), (*given, ast.comprehension, ast.For, ast.Subscript, ast.Expr))


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a copy. `read`: a use that needs it where the network is; `loaded`: the calls that load it; `kept`: the uses
    that store it; `many`: a list or dict of them; `unseen`: somebody gets it who is not seen; `restored_only`: it is only loaded, saved
    or compared with None."""

    uses: tuple[Use, ...]
    read: Use | None
    loaded: tuple[Use, ...]
    saved: tuple[Use, ...]
    kept: tuple[Use, ...]
    unseen: Use | None
    many: bool
    returned: Use | None


def fate(evaluator: Evaluator, copy: Copy) -> Fate:
    """What becomes of a copy, under whatever name and in whatever function."""
    uses = tuple(consumers(evaluator, copy.node, copy.frame, "object"))
    read = next((one for one in uses if _needs_it_there(one)), None)
    loaded = tuple(one for one in uses if _loads_into_network(evaluator, one))
    if copy.what == "clone" and (back := _put_back(evaluator, copy)):
        read, loaded = None, (*loaded, *back)
    saved = tuple(one for one in uses if is_saved(one))
    kept = tuple(one for one in uses if one.role == "stored")
    known = {id(one) for one in (*loaded, *saved, *filter(restores, uses))}
    away = [one for one in uses if id(one) not in known and one.name.rpartition(".")[2] not in _LOOKS]
    unseen = next((one for one in away if one.role in ("given", "too much", "copied", "reads")), None)
    many = any(_piles_up(copy, one) for one in kept)
    returned = next((one for one in uses if one.role == "returned"), None)
    return Fate(uses, read, loaded, saved, kept, unseen, many, returned)


def _put_back(evaluator: Evaluator, copy: Copy) -> list[Use]:
    """Where the clones are copied back one by one, and nothing else is done with any of them; empty where more is."""
    uses = consumers(evaluator, copy.node, copy.frame, "storage", (ANY,))
    back = [one for one in uses if restores(one)]
    rest = (one for one in uses if one not in back and one.role not in _HOLDING)
    return back if not any(rest) else []


def _loads_into_network(evaluator: Evaluator, use: Use) -> bool:
    """`network.load_state_dict(copy)`; a function of that name fills what it is given."""
    network = called_on(use.node, "load_state_dict") if use.role == "given" else None
    known = evaluator.value_of(network, use.frame).kind if network is not None else ""
    return known in ("module", "unknown", "object")


def _piles_up(copy: Copy, use: Use) -> bool:
    """Whether a container gets one more copy of the same network in each round: a list, or a dict whose key is another each time."""
    if not isinstance(use.owner, tuple) or not isinstance(use.owner[1], Value):
        return False
    flow = use.frame.flow
    loops = flow.loops(use.node)
    if not loops or use.frame is not copy.frame:
        return bool(loops)
    target = getattr(loops[0], "target", None)
    rounds = names_in(target) if target is not None else set()
    if rounds & names_in(copy.source):
        return False  # one of each network
    statement = flow.statement_of(use.node)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        index = statement.targets[0].slice
        if any(isinstance(one, ast.Mod) for one in ast.walk(index)) or not rounds & names_in(index):
            return False
        return not any(flow.calls_on({key_of(statement.targets[0].value)}, "pop", "popitem", "clear"))
    return True


def _updates_itself(use: Use) -> bool:
    """Whether weights are read to give them their own next value: `old[key].copy_(old[key] * decay + …)`."""
    own, flow = names_in(use.node), use.frame.flow
    around = [*flow.ancestors(use.node)]
    around += [each for one in around for name in flow.named(one) for each in flow.ancestors(name)]
    calls = (one for one in around if called_on(one) is not None and last_name(one.func).endswith("_"))
    return any(own & names_in(flow.place(called_on(one))) for one in calls)


def _needs_it_there(use: Use) -> bool:
    """Whether a use computes with a copy, changes it, or runs it."""
    if use.path[:1] == ("#",):  # its weights
        reads = use.role in ("computed", "optimized", "reads") and use.name != "load_state_dict"
        return reads and not _updates_itself(use)
    if use.role in ("called", "computed", "written", "optimized") or (use.role, use.name) == ("set", "item"):
        return True
    takes_out = use.role == "attribute" and use.name in ("items", "values", "item", "pairs", "get")
    return not use.path and (takes_out or (use.role == "method" and use.name not in _NEUTRAL))


def changed_between(copy: Copy) -> Any:
    """What is put in the place of the network that a state dict is of: then it is another's."""
    flow = copy.frame.flow
    at = flow.order.get(flow.statement_of(copy.node), 0)
    given = (one for one in flow.definitions.get(key_of(copy.source) or "", ()) if one.kind == "assign")
    return next((one.node for one in given if flow.order.get(one.statement, 0) > at), None)
