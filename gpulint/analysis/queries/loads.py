"""What `torch.load` brings back: where to, what becomes of it, and what keeps it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from gpulint.analysis.domain.values import Device, Value
from gpulint.analysis.evaluate.consumers import Use, consumers, consumers_of_definition
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.evaluate.weights import LARGE, SMALL, weight
from gpulint.analysis.project.file import File, methods_naming
from gpulint.analysis.queries.amounts import said
from gpulint.analysis.queries.networks.behind import made_of
from gpulint.analysis.syntax.flow import Definition
from gpulint.analysis.syntax.nodes import argument, called_on, keyword
from gpulint.answers import Answer, Question, Verdict, left_open, minor, proven, refuted

Optimizer = Literal["restored", "saved", ""]  # whose state is in a checkpoint, and what says so

_OF_PATHS = ("os", "pathlib", "glob", "sys")
# Kinds whose states hold numbers.
_OF_NUMBERS = frozenset({"scheduler", "scaler", "loader"})


@dataclass(frozen=True, slots=True)
class Load:
    """A call that loads; `location` is the place that it names, the stars that may hold one, or None where the file says where each tensor
    goes; `device`: where.
    `elsewhere`: it names a place, and the code does not say which. `by_cuda`: it names none where CUDA is available, and the host else; `place` is what is wrong then: what asks for CUDA, else the call."""

    call: ast.Call
    frame: Frame
    location: Any
    device: Device
    elsewhere: bool
    by_cuda: bool
    place: Any


@dataclass(frozen=True, slots=True)
class Restored:
    """What is loaded, or an entry of it, goes into what `owner` gives in `frame`: by its `load_state_dict`, or tensor by tensor into those of
    its weights."""

    use: Use
    owner: Any
    frame: Frame
    value: Value
    assigns: bool


@dataclass(frozen=True, slots=True)
class Loaded:
    """What becomes of it. `whole`: the names that stand for all of it, or for an entry that is restored, each with its frame;
    `adopted`: a use by which a tensor of it becomes a part of something else; `other`: one that may compute with it; `entries`:
    whether it is taken apart, as a training's checkpoint is and bare weights are not."""

    restored: tuple[Restored, ...]
    bound: tuple[tuple[Definition, Frame], ...]
    adopted: Use | None
    other: Use | None
    returned: Use | None
    entries: bool
    piled: Use | None

    @property
    def networks(self) -> tuple[Restored, ...]:
        return tuple(one for one in self.restored if one.value.kind not in (*_OF_NUMBERS, "optimizer"))

    @property
    def optimizers(self) -> tuple[Restored, ...]:
        return tuple(one for one in self.restored if one.value.kind == "optimizer")


def loads(evaluator: Evaluator, file: File) -> Iterator[Load]:
    """The loads of a file, in the order of the text."""
    for function, call in file.calls_named("load"):
        frame = evaluator.root(function)
        target = evaluator.value_of(call.func, frame)
        row = evaluator.table.function(target.ref)
        if row is None or row.does != "loads" or not call.args:
            continue
        given = evaluator.calling.given(call, "map_location", frame, 1)
        location = argument(call, 1, "map_location") or next(iter(stars_of(call)), None) if given else None
        device = evaluator.value_of(call, frame).device
        none = given is None or given.kind == "none"
        if isinstance(location, ast.Constant) and none:
            location = None
        place = _place(call, location, frame) if none else call
        by_cuda = place is not call or (none and _asks_for_cuda(evaluator, call, frame))
        yield Load(call, frame, location, device, not none and device == "?", by_cuda, place)


def stars_of(call: ast.Call) -> list[ast.expr]:
    """What a call gives in stars."""
    by_name = (one.value for one in call.keywords if one.arg is None)
    return [*by_name, *(one for one in call.args if isinstance(one, ast.Starred))]


def _asks_for_cuda(evaluator: Evaluator, call: ast.Call, frame: Frame) -> bool:
    """Whether a load stands in an arm of an `if` that CUDA decides, whose other arm loads as well."""
    flow = frame.flow
    for block in flow.around(call):
        owner = block.owner
        if isinstance(owner, ast.If) and owner.orelse and evaluator.truth(owner.test, frame) is not None:
            around = (other for one in flow.calls.get("load", ()) for other in flow.around(one))
            return any(other.owner is owner and other.arm != block.arm for other in around)
    return False


def _place(call: ast.Call, location: Any, frame: Frame) -> Any:
    """What makes the place of a load None: the `if` that asks for CUDA, or where the name is bound."""
    if not isinstance(location, ast.Name):
        return call
    flow = frame.flow
    given = [one for one in flow.reaching(location) if one.kind == "assign"]
    owners = (flow.blocks[one.statement].owner for one in given if len(given) > 1)
    return next((one for one in owners if isinstance(one, ast.If)), given[0].value if given else call)


def loaded(evaluator: Evaluator, load: Load) -> Loaded:
    """What becomes of what is loaded, under whatever name and in whatever function."""
    uses = consumers(evaluator, load.call, load.frame, "storage")
    restored = tuple(_restored(evaluator, one) for one in uses if restores(one))
    parts = {id(one.use) for one in restored}
    itself = (one for one in consumers(evaluator, load.call, load.frame, "object") if not one.path)
    whole = {one.owner for one in itself if one.role == "bound" and one.owner.kind in ("assign", "parameter")}
    named = (one for one in uses if one.role == "bound")
    kept = (one for one in named if one.owner in whole or _is_restored_entry(evaluator, one))
    bound = tuple((one.owner, one.frame) for one in kept)
    adopted = next((one for one in uses if one.owner not in whole and _adopts(evaluator, one)), None)
    other = next((one for one in uses if id(one) not in parts and _computes(one)), None)
    returned = next((one for one in uses if one.role == "returned"), None)
    taken = [load.call, *(one for definition, frame in bound for one in frame.flow.uses_of(definition))]
    flows = {load.frame.flow, *(frame.flow for _, frame in bound)}
    entries = any(_is_taken_from(flow, one) for flow in flows for one in taken)
    piled = next((one for one in uses if _piles_up(one, load)), None)
    return Loaded(restored, bound, adopted, other, returned, entries, piled)


def restores(use: Use) -> bool:
    """Whether a use copies what it is given: into a network or optimizer, or into one of their tensors."""
    by_tensor = use.row is not None and use.row.does == "copies into"
    return by_tensor or (use.role == "given" and called_on(use.node, "load_state_dict") is not None)


def _restored(evaluator: Evaluator, use: Use) -> Restored:
    owner, frame = use.node.func.value, use.frame
    if use.row is not None and use.row.does == "copies into":
        owner, frame = _network_of(evaluator, owner, frame)
    return Restored(
        use, owner, frame, evaluator.value_of(owner, frame), assigns(evaluator, use.node, use.frame)
    )


def _network_of(evaluator: Evaluator, tensor: Any, frame: Frame) -> tuple[Any, Frame]:
    """The network that a tensor is one of the weights of, `p` of `for p in net.parameters()`; the tensor where none is seen."""
    made = made_of(evaluator, tensor, frame)
    return next((one for one in made if evaluator.value_of(*one).kind == "module"), (tensor, frame))


def assigns(evaluator: Evaluator, call: ast.Call, frame: Frame) -> bool:
    """Whether a `load_state_dict` puts what it is given in the place of the network's own tensors."""
    given = keyword(call, "assign")
    return given is not None and evaluator.value_of(given, frame).const is not False


def _is_restored_entry(evaluator: Evaluator, use: Use) -> bool:
    """Whether a name stands for an entry that is restored: the states of a network, not a number."""
    bound = use.owner.kind == "assign"
    return bound and any(map(restores, consumers_of_definition(evaluator, use.owner, use.frame, "storage")))


def _is_taken_from(flow: Any, node: Any) -> bool:
    """Whether an entry of what an expression gives is taken: `ckpt["net"]`, `ckpt.get("net")`."""
    above = flow.parents.get(node)
    if isinstance(above, ast.Subscript):
        return above.value is node and isinstance(above.slice, ast.Constant)
    return isinstance(above, ast.Attribute) and above.attr in ("get", "pop", "items")


def _adopts(evaluator: Evaluator, use: Use) -> bool:
    if use.role == "bound" and use.owner.kind == "assign":
        on_host = evaluator.definition(use.owner, use.frame).device == "host"  # wherever it was loaded to
        return not on_host and _takes_the_place_of_a_tensor(evaluator, use)
    if use.role == "given":
        return use.name == "setattr" or ".__dict__." in use.name
    return use.role in ("called", "method") and use.name not in ("", "cpu", "to", "load_state_dict")


def _takes_the_place_of_a_tensor(evaluator: Evaluator, use: Use) -> bool:
    """Whether it is given to an attribute that is a tensor elsewhere in its class, or is used as one, or as what holds such."""
    function, (own, dot, name) = use.frame.function, use.owner.key.partition(".")
    if not dot or function.cls is None or own != function.self_name:
        target = getattr(use.owner.node, "value", None)
        return bool(dot) and evaluator.value_of(target, use.frame).kind not in ("object", "unknown")
    for method, one in evaluator.fields(function.cls, name):
        value = evaluator.definition(one, evaluator.root(method))
        value = evaluator.element(value) if value.kind in ("dict", "list") else value
        if one is not use.owner and value.kind in ("tensor", "parameter"):
            return True
    table = evaluator.table
    for method, key in methods_naming((function.cls,), name):
        for node in method.flow.uses.get(key, ()):
            above = method.flow.parents.get(node)
            if isinstance(above, ast.Subscript):
                above = method.flow.parents.get(above)
            asked = getattr(above, "attr", "")
            if table.own("tensor", asked) is not None or table.own("tensor.attributes", asked) is not None:
                return True
    return False


def _computes(use: Use) -> bool:
    if use.role == "given":
        return use.name.rpartition(".")[2] not in ("print", "len", "isinstance", "type", "set", "sorted")
    return use.role in ("computed", "optimized", "too much")


def _piles_up(use: Use, load: Load) -> bool:
    """Whether one more is put into a list in each round of the loop that loads."""
    loops = load.frame.flow.loops(load.call)
    if use.role == "bound":
        return isinstance(use.owner.value, (ast.ListComp, ast.DictComp)) and use.owner.value in loops
    if use.role != "stored" or not isinstance(use.owner, tuple) or not isinstance(use.owner[1], Value):
        return False
    return use.owner[1].kind == "list" and not set(use.frame.flow.loops(use.node)).isdisjoint(loops)


def saved_states(evaluator: Evaluator, files: Iterable[File]) -> tuple[list[Value], list[Value]]:
    """The networks and optimizers whose states these files save: as they are, and from the host."""
    as_they_are: list[Value] = []
    from_host: list[Value] = []
    for file in files:
        for function, call in file.calls_named("state_dict"):
            if isinstance(call.func, ast.Attribute):
                frame = evaluator.root(function)
                uses = consumers(evaluator, call, frame, "graph")
                if any(map(is_saved, uses)):
                    rows = [one.row for one in uses if one.role == "method" and one.row is not None]
                    found = from_host if any(one.device == "host" for one in rows) else as_they_are
                    found.append(evaluator.value_of(call.func.value, frame))
    return as_they_are, from_host


def made_elsewhere(evaluator: Evaluator, load: Load) -> Any:
    """What says that no training has written the file: it is made just before, comes out of a call that is not seen, or with the code."""
    flow = load.frame.flow
    path = load.call.args[0]
    for one, _ in made_of(evaluator, path, load.frame):
        if isinstance(one, ast.Name) and one.id == "__file__":
            return one
    reaching = flow.reaching(path) if isinstance(path, ast.Name) else ()
    for one in reaching:
        if one.kind == "assign" and isinstance(one.value, ast.Call) and not one.path:
            made_by = evaluator.value_of(one.value.func, load.frame)
            unseen = evaluator.value_of(one.value, load.frame).kind == "unknown"
            if made_by.kind == "library" and unseen and not str(made_by.ref).startswith(_OF_PATHS):
                return one.value
    for definition in reaching:
        for use in flow.uses_of(definition):
            above = flow.parents.get(use)
            before = flow.order[flow.statement_of(use)] < flow.order[flow.statement_of(load.call)]
            done = isinstance(flow.parents.get(above), ast.Expr)  # else it is asked something
            if isinstance(above, ast.Call) and before and done:
                target = evaluator.value_of(above.func, load.frame)
                given = (evaluator.value_of(one, load.frame).kind for one in above.args)
                # else it saves what a training has made
                other = {"module", "optimizer", "state", "dict"}.isdisjoint(given)
                unseen = "." in target.full_name and evaluator.table.function(target.full_name) is None
                if other and (target.kind == "function" or unseen):
                    return above
    return None


def is_saved(use: Use) -> bool:
    """Whether a use writes what it is given to a file."""
    return use.role == "saved" or (use.role == "given" and "save" in use.name.rpartition(".")[2])


def weights_matter(evaluator: Evaluator, network: Value, what: str, if_small: Verdict) -> Answer:
    """Whether one more copy of a network's weights is much beside its training."""
    found = weight(evaluator, network)
    has, small = f"the network has {said(found.least)}", found.whole and found.least < SMALL
    if found.least >= LARGE:
        return proven(Question.SIZE, has)
    clause = has if small else f"how large {what} is, the code does not say"
    return Answer(Question.SIZE, if_small if small else Verdict.OPEN, clause)


def checkpoint_matters(
    evaluator: Evaluator, networks: list[Value], optimizer: Optimizer, by_ranks: bool, stays: bool
) -> Iterator[Answer]:
    """Whether a checkpoint of networks is much beside what a training takes: an optimizer's state is up to twice their weights, be it restored
    from there, or only saved by the program."""
    found = [weight(evaluator, one) for one in networks]
    together = sum(one.least for one in found)
    small = bool(found) and all(one.whole for one in found)
    beside = ", and the optimizer's state up to twice that" if optimizer else ""
    if together * (3 if optimizer else 1) >= LARGE:
        yield proven(Question.SIZE, f"the networks have {said(together)}{beside}")
    elif small and not by_ranks and not optimizer and (not stays or together < SMALL):
        yield refuted(Question.SIZE, f"the networks have {said(together)}{beside}")
    elif small:
        yield left_open(Question.SIZE, f"the networks have {said(together)}{beside}")
    elif by_ranks:
        yield proven(Question.SIZE, "all processes load it onto one GPU")
    elif optimizer or stays:
        yield minor(Question.SIZE, "how large the network is, the code does not say")
    else:
        yield left_open(Question.SIZE, "how large it is, the code does not say")
