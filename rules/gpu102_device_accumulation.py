from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from gpulint.rules._held.mended import by_methods

from gpulint.analysis.asked import Asked
from gpulint.analysis.domain.values import Value
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.evaluate.weights import trips
from gpulint.analysis.project.file import quoted
from gpulint.analysis.queries.amounts import is_over_batches
from gpulint.analysis.queries.grad_mode import grad_mode
from gpulint.analysis.queries.multiplicity import BATCH_HOOKS
from gpulint.analysis.queries.networks.behind import behind, made_of
from gpulint.analysis.queries.networks.forwards import Forward
from gpulint.analysis.queries.networks.placed import placed
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.queries.stores import on_device
from gpulint.analysis.queries.stores.graph_state import graph_state
from gpulint.analysis.queries.stores.stores import Owner, Round, Store, bounded, emptying, leaves, owner_of
from gpulint.analysis.syntax.nodes import iterated, last_name
from gpulint.answers import Answer, Question, Verdict, left_open, minor, proven, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.rule import Claimed, Cost, Repair, Report, Rule

_COST: Final = Cost("the bytes of the whole output, for each batch", "500 MiB a step for a language model's logits; H200, torch 2.11")  # fmt: skip
_FEW: Final = 16  # rounds


class DeviceAccumulation(Rule):
    """
    ## What it does
    Finds model outputs without a graph that pile up in a container, batch after batch, while they stay on the device: in a list, under
    new keys of a dict, in a tensor that grows by `cat`, in an object's own container, whose methods are followed. So are the uses of the
    container, into callers and other files too: it is told where all of it goes to the host, is saved, where nobody reads it, or
    nobody is seen to. Where all of it is computed with on the device it is told with a doubt if a loader fills it, else not.

    It is a warning where an output has values for each token or pixel: logits of a language model, hidden states, masks, what a
    convolution gives last. Of other networks nothing shows how large it is, and features and scores of a few classes rarely come to
    much: over all batches of a loader, and in a list that nobody reads, that is a note, elsewhere it is told with a doubt. Nothing is
    told of what is a number for each sample. Told with a doubt as well is what a loop reads and moves to the device in advance, to be
    used one by one.

    ## Why is this bad
    Under `no_grad` an output has no graph, but it is as large as the batch's logits or features, and a list of all of
    them grows with the data set until the GPU is full, usually at the end of the first validation. A slice of an
    output is no better: a view keeps the whole tensor it was taken from.

    ## What it costs
    The output's own bytes, each batch: 500 MiB a step for the logits of a language model with a vocabulary of 32,000
    (batch 16 × 256), 2.00 MiB for the features of an 8-layer MLP (512 × 1,024), and 0 B where they go to the host. A
    kept view of one row, `out[0]`, costs what the whole output costs, 500 MiB and 2.00 MiB; a `clone()` of that row of
    logits 31.25 MiB (NVIDIA H200, torch 2.11).

    ## Example
    ```python
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained("gpt2").cuda().eval()


    @torch.no_grad()
    def predict(loader):
        outputs = []
        for tokens in loader:
            outputs.append(model(tokens.cuda()).logits)
        return torch.cat(outputs).cpu().numpy()
    ```

    ## Use instead
    ```python
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained("gpt2").cuda().eval()


    @torch.no_grad()
    def predict(loader):
        outputs = []
        for tokens in loader:
            outputs.append(model(tokens.cuda()).logits.cpu())
        return torch.cat(outputs).cpu().numpy()
    ```

    ## Fix safety
    The fix inserts `.cpu()`. It is unsafe: what is made from the container afterwards is on the CPU too. Nothing is offered
    where it is not seen to go to the host, nor for a tensor that grows: what it starts from would have to move as well.
    """

    code = "GPU102"
    name = "device-accumulation"
    runtime_claim = Claim("drift")
    doubts = True
    triggers = (
        (b"torch", b"lightning"), (b"append", b"extend", b"insert", b"+=", b"] =", b"cat(", b"stack("),
        (b"for ", b"while ", b"self."), (b"cuda", b".to(", b"device", b"gpu", b"lightning", b"accelerat"),
    )  # fmt: skip

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        told: set[Any] = set()
        for function in (asked.file.body, *asked.file.functions):
            for store in on_device.stored(asked.evaluator, asked.root(function)):
                for leaf in leaves(store):
                    if leaf not in told and _may_pile_up(asked, store, leaf):
                        yield from _claimed(asked, store, leaf, told)


def _claimed(asked: Asked, store: Store, leaf: Any, told: set[Any]) -> Iterator[Claimed]:
    """The claim of one value that is stored: where it is put, or where it is given to what puts it into its own container."""
    owner = owner_of(asked.evaluator, store.container, store.frame, store.at)
    calls = [one for one, where in store.frame.chain() if asked.is_here(where)]
    handed_out = owner.frame is not store.frame and not owner.attributes
    here = asked.is_here(store.frame) and (handed_out or not calls)
    at = store.at if here else next(reversed(calls), None)
    within = bool(calls) and owner.kind == "local" and owner.frame is store.frame
    if at is not None and not within:  # what a function keeps for itself is asked about with that
        answers = until_refuted(_answers(asked, store, leaf, owner))
        told |= {leaf} if answers[-1].verdict is not Verdict.REFUTED else set()
        yield Claimed(at, owner.key, answers, partial(_report, asked, at, store, leaf, owner))


def _may_pile_up(asked: Asked, store: Store, leaf: Any) -> bool:
    """Whether a store adds a tensor without a graph to others: beside them, or joined with them."""
    evaluator, frame = asked.evaluator, store.frame
    joined = {last_name(one.func) for one in ast.walk(leaf) if isinstance(one, ast.Call)} & on_device.JOINING
    if store.way not in ("put", "slot", "added") or (store.way == "added" and not joined):
        return False
    value = evaluator.value_of(leaf, frame)
    value = evaluator.element(value) if on_device.holds_several(evaluator, store, leaf) else value
    seen = value.kind != "unknown" or on_device.is_of_output(evaluator, leaf, frame)
    may_be = value.kind in ("tensor", "unknown") and value.size != "scalar"
    if not (may_be and (seen or _is_unseen(asked, store, leaf))):
        return False
    if _has_graph(asked, value) and store.way == "put":  # what becomes an array as it is has none
        owner = owner_of(evaluator, store.container, frame, store.at)
        return graph_state(evaluator, store, owner, set(value.origins)).state == "none"
    return not _has_graph(asked, value)


def _has_graph(asked: Asked, value: Value) -> bool:
    """Whether a value has a graph where those who call its forwards, or a framework, do not switch grad off."""
    made = (one for one in value.origins if one[1] is not None)
    return bool(value.graph) and {grad_mode(asked.evaluator, *one).mode for one in made} != {"off"}


def _is_unseen(asked: Asked, store: Store, leaf: Any) -> bool:
    """Whether it is not seen what makes a value, and still it is a tensor without a graph, and none of the host: torch joins it."""
    evaluator, frame = asked.evaluator, store.frame
    if not on_device.is_joined(evaluator, store, leaf):
        return False
    made = on_device.operations(evaluator, leaf, frame)
    calls = ((store.at, frame), *(one for one in made if isinstance(one[0], ast.Call)))
    network = behind(evaluator, leaf, frame) or any(evaluator.grad_is_off(*one) for one in calls)
    return bool(network) and all(one.device != "host" for one in evaluator.ways(leaf, frame))


def _answers(asked: Asked, store: Store, leaf: Any, owner: Owner) -> Iterator[Answer]:
    """On what the claim stands that a place takes in large tensors of a device, round after round, for the host."""
    evaluator, frame = asked.evaluator, store.frame
    runs, value = behind(evaluator, leaf, frame), evaluator.value_of(leaf, frame)
    if runs and _is_given_here(asked, leaf, frame, {one.frame for one in runs}):
        yield refuted(Question.REACHED, "it is told where it is given to it")
    given, read = on_device.is_of_output(evaluator, leaf, frame), _of_reads(asked, store, leaf, owner)
    if value.kind == "unknown" and not given and _is_unseen(asked, store, leaf):
        yield left_open(Question.TENSOR, "what makes it is not seen")
    elif not runs and read is None:
        yield from _of_moved(asked, store, leaf, owner)
        return
    if _has_graph(asked, value):
        yield left_open(Question.GRAPH, "it has no graph only as it becomes an array")
    if store.elements and leaf is store.value and given and not on_device.is_joined(evaluator, store, leaf):
        yield left_open(Question.TENSOR, "what the network gives may be a list, and of what is on the host")
    if on_device.is_number_each(evaluator, leaf, frame):
        yield refuted(Question.SIZE, "it is a number for each sample, or a few")
    if on_device.is_dense(evaluator, leaf, frame):
        yield proven(Question.SIZE, "it has values for each token, or for each pixel")
    elif (runs and read is not None) or _over_loader(asked, owner):
        yield minor(Question.SIZE, "how much each round adds is not shown")
    else:
        yield left_open(Question.SIZE, "how much each round adds, and how many there are, is not shown")
    yield _of_device(asked, store, leaf, runs, read is not None)
    yield from _of_owner(asked, store, owner)
    yield from _of_rounds(asked, owner)
    yield from (read,) if read is not None else _of_ends(asked, store, leaf, owner)
    yield from reached(evaluator, frame.function)


def _is_given_here(asked: Asked, leaf: Any, frame: Frame, made: set[Frame]) -> bool:
    """Whether a function that stands for all calls is given a value by calls in this file, where what makes it is run."""
    own = (one for one, where in made_of(asked.evaluator, leaf, frame) if where is frame)
    bound = (one for name in own if isinstance(name, ast.Name) for one in frame.flow.reaching(name))
    given = any(one.kind == "parameter" and one.key != frame.function.self_name for one in bound)
    sites = asked.evaluator.callers(frame.function) if given and frame.caller is None else ()
    return made <= {one.frame for one in sites if asked.is_here(one.frame)}


def _of_reads(asked: Asked, store: Store, leaf: Any, owner: Owner) -> Answer | None:
    """That a function's own container is filled for nothing, or for the last that is put into it."""
    if owner.kind == "local" and on_device.is_never_read(asked.evaluator, store, leaf):
        return proven(Question.READS, f"nothing reads `{owner.key}`")
    own = owner.kind == "local" and owner.frame is store.frame and isinstance(store.container, ast.Name)
    is_list = asked.evaluator.value_of(store.container, store.frame).kind == "list"
    if own and is_list and on_device.is_only_last_read(asked.evaluator, store):
        return proven(Question.READS, f"of `{owner.key}` only the last is read")
    return None


def _of_moved(asked: Asked, store: Store, leaf: Any, owner: Owner) -> Iterator[Answer]:
    """On what it stands that a place takes in what no network makes: what a loop reads, moved in advance and used one by one."""
    evaluator, frame = asked.evaluator, store.frame
    steps = on_device.operations(evaluator, leaf, frame)
    calls = [one for one in steps if isinstance(one[0], ast.Call)]
    moves = [one for one in calls if on_device.is_move(evaluator, *one)]
    if not moves or moves == calls or evaluator.value_of(leaf, frame).graph:
        yield refuted(Question.TENSOR, "neither a network is seen to make it, nor that it is read and moved")
    rows = (evaluator.row_of(*one) for one in made_of(evaluator, leaf, frame) if isinstance(one[0], ast.Call))
    read = {one.iter for loop in owner.rounds if isinstance(one := loop.loop, ast.For)}
    made_here = any(one and one.fills for one in rows)
    if made_here or read.isdisjoint(one for one, _ in made_of(evaluator, leaf, frame)):
        yield refuted(Question.REPEATS, "it is not what a loop reads")
    yield from _of_owner(asked, store, owner)
    yield from _of_rounds(asked, owner)
    if on_device.is_joined(evaluator, store, leaf):
        yield refuted(Question.READS, "it is made one tensor of")
    if evaluator.value_of(leaf, frame).device != "cuda":
        yield left_open(Question.DEVICE, "whether it is moved to a GPU is not shown")
    if "wanted" in on_device.ends(evaluator, store, leaf):
        yield left_open(Question.MEANT, "a network may go through all of it again and again")
    yield left_open(Question.SIZE, "how large it is, and how much of it there is, is not shown")
    yield from reached(evaluator, frame.function)


def _of_device(asked: Asked, store: Store, leaf: Any, runs: list[Forward], unread: bool) -> Answer:
    evaluator, frame = asked.evaluator, store.frame
    ways = [one.device for one in evaluator.ways(leaf, frame)]
    if "host" in ways:
        return refuted(Question.DEVICE, "it is moved to the host before")
    steps = on_device.operations(evaluator, leaf, frame)
    again = [one for one in steps if isinstance(one[0], ast.Call) and last_name(one[0].func) == "to"]
    if any(evaluator.calling.device(*one) == "?" for one in again):
        return refuted(Question.MEANT, "it is moved once more, to a device that somebody chooses for it")
    moved = any(on_device.is_move(evaluator, one, where) for one, where in made_of(evaluator, leaf, frame))
    places = [placed(evaluator, one.expression, one.frame) for one in runs]
    if "cuda" in ways or moved or any(one.device != "host" and one.how == "moved" for one in places):
        return proven(Question.DEVICE, "it is made on the GPU, and nothing moves it to the host")
    if frame.function.name in BATCH_HOOKS and frame.function.cls is not None:
        return proven(Question.DEVICE, "a framework brings the network to the GPU")
    given = all(one.how == "given" for one in places)
    if given and "host" in on_device.ends(evaluator, store, leaf):
        return left_open(Question.DEVICE, "that it is on a GPU shows only in that it is moved to the host")
    if given and unread:
        return left_open(Question.DEVICE, "whether it is on a GPU is not shown")
    return refuted(Question.DEVICE, "nothing in sight is on a GPU")


def _of_owner(asked: Asked, store: Store, owner: Owner) -> Iterator[Answer]:
    """Whether a place keeps all that it is given, and beyond a batch."""
    key = owner.key
    if (bound := bounded(asked.evaluator, store)) is not None:
        yield refuted(Question.OUTLIVES, f"`{key}` holds so many at most", bound.by)
    filling = {one.loop for one in owner.rounds if one.frame is owner.frame}
    for by in emptying(key, key, owner.frame):
        if filling & set(owner.frame.flow.loops(by)):
            yield refuted(Question.OUTLIVES, f"`{key}` is emptied as it is filled", by)
    if store.way == "slot" and not _renews(asked, store, owner):
        yield refuted(Question.REPEATS, "each round writes over what the one before has stored")
    yield proven(Question.OUTLIVES, f"`{key}` keeps one for each round")


def _renews(asked: Asked, store: Store, owner: Owner) -> bool:
    """Whether one of the keys that a value is stored under is another in each round of the outermost loop, and not a ring's."""
    loops = [one.loop for one in _many(asked, owner) if one.frame is store.frame]
    target = store.at.targets[0] if isinstance(store.at, ast.Assign) else None
    while loops and isinstance(target, ast.Subscript):
        parts = [one for one, _ in made_of(asked.evaluator, target.slice, store.frame)]
        flow = store.frame.flow
        names = [one for one in parts if isinstance(one, ast.Name) and one in flow.parents]
        bound = [(one.kind, one.statement) for name in names for one in flow.reaching(name)]
        new = ("loop", loops[-1]) in bound or any(kind == "augmented" for kind, _ in bound)
        ring = any(isinstance(one, ast.Mod) for one in parts)
        if new and not ring and not behind(asked.evaluator, target.slice, store.frame):
            return True
        target = target.value
    return False


def _many(asked: Asked, owner: Owner) -> list[Round]:
    """The loops that fill a place whose rounds may be many: not those about the parts of a network, or of what one gives."""
    found = []
    for one in owner.rounds:
        count = trips(asked.evaluator, one.loop, one.frame)
        through = one.frame.flow.iterated(one.loop)
        of_output = through is not None and bool(behind(asked.evaluator, through, one.frame))
        if not (of_output or asked.steps.is_over_parts(one.loop, one.frame)) and (count or _FEW + 1) > _FEW:
            found.append(one)
    return found


def _of_rounds(asked: Asked, owner: Owner) -> Iterator[Answer]:
    if owner.birth is not None and not _over_batches(asked, owner):
        yield refuted(Question.OUTLIVES, f"`{owner.key}` is made anew in each round of a loop", owner.birth)
    if not _many(asked, owner):
        rates = {one.rate for one in asked.multiplicity.of(owner.at, owner.frame)}
        if owner.kind == "local" or not rates & {"step", "every nth", "?"}:
            yield refuted(Question.REPEATS, "no loop with many rounds runs it")
        elif "step" not in rates:
            clause = f"whether a loop runs `{owner.frame.function.name}` is not seen"
            yield left_open(Question.REPEATS, clause)


def _over_loader(asked: Asked, owner: Owner) -> bool:
    """Whether a place is filled in each round over all that a loader gives, here or where the method is called."""
    if owner.frame.function.name in BATCH_HOOKS and owner.kind == "object":
        return True
    ways = asked.multiplicity.of(owner.at, owner.frame) if owner.kind != "local" else ()
    filling: list[Any] = [*_many(asked, owner), *(one for one in ways if one.rate == "step" and one.frame)]
    loops = ((iterated(one.loop), one.frame) for one in filling)
    through = [asked.evaluator.value_of(node, frame) for node, frame in loops if node is not None]
    items = [asked.evaluator.element(one) for one in through]
    beside = [part for one in items if one.kind == "tuple" for part in one.parts or ()]  # `enumerate(loader)`
    return any(one.kind == "loader" or one.size == "batch" for one in (*through, *items, *beside))


def _over_batches(asked: Asked, owner: Owner) -> bool:
    return any(is_over_batches(asked.evaluator, one.loop, one.frame) for one in _many(asked, owner))


def _of_ends(asked: Asked, store: Store, leaf: Any, owner: Owner) -> Iterator[Answer]:
    found = on_device.ends(asked.evaluator, store, leaf)
    here = store.frame.function.file
    apart = {way for way, use in found.items() if use.frame.function.file is not here}
    elsewhere = apart & {"array", "wanted"}
    if elsewhere and not found.keys().isdisjoint({"host", "unseen"}):
        yield left_open(Question.READS, "another file may get it where it has been moved, or after it has")
        found = {way: use for way, use in found.items() if way not in elsewhere}
    if "array" in found:
        yield refuted(Question.DEVICE, "it becomes an array as it is: it is on the host", found["array"].node)
    if "ids" in found:
        yield refuted(Question.SIZE, "it is read as whole numbers", found["ids"].node)
    if "wanted" in found:
        told = left_open if _over_loader(asked, owner) else refuted
        yield told(Question.READS, "all of it is computed with on the device", found["wanted"].node)
    if "host" in found:
        yield proven(Question.READS, "all of it goes to the host", found["host"].node)
    elif "numbers" in found and "unseen" not in found:
        told = left_open if not owner.rounds else refuted
        yield told(Question.READS, "it is reduced on the device, and only numbers of it are read")
    elif owner.rounds and not _over_batches(asked, owner):
        joined = "unseen" in found and on_device.is_joined(asked.evaluator, store, leaf)
        clause = "neither its rounds are shown to be batches, nor that it goes to the host"
        yield (left_open if joined else refuted)(Question.REPEATS, clause)
    elif "unseen" in found:
        yield left_open(Question.READS, "what becomes of all of it is not seen")


def _report(asked: Asked, at: Any, store: Store, leaf: Any, owner: Owner) -> Report:
    what = quoted(store.frame.function.file.source(leaf), 40)
    return Report(
        at,
        f"`{owner.key}` collects `{what}` of every batch on the device",
        "no graph, but the tensors stay on the device until the container goes",
        _COST,
        repair=partial(_repair, asked, store, leaf, owner),
    )


def _repair(asked: Asked, store: Store, leaf: Any, owner: Owner) -> Repair | None:
    if store.way == "added" or not asked.is_here(store.frame):
        return None  # `x = torch.cat([x, y])`: what x starts from would have to move as well
    if "host" not in on_device.ends(asked.evaluator, store, leaf):
        return None  # it may be needed on the device
    why = f"what reads `{owner.key}` finds tensors on the CPU"
    return by_methods(asked, (leaf,), ("cpu",), "keep the copy on the host: `.cpu()`", why)
