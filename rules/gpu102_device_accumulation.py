from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from gpulint.analysis.evaluate.weights import trips
from gpulint.analysis.project.file import quoted
from gpulint.analysis.queries.amounts import is_over_batches
from gpulint.analysis.queries.grad_mode import grad_mode
from gpulint.analysis.queries.multiplicity import BATCH_HOOKS
from gpulint.analysis.queries.networks.behind import behind, made_of, source_of
from gpulint.analysis.queries.networks.placed import placed
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.queries.stores.emptied import emptied
from gpulint.analysis.queries.stores.on_device import (
    JOINING,
    ends,
    holds_several,
    input_of,
    is_buffer,
    is_dense,
    is_move,
    is_number_each,
    is_of_output,
    is_unseen_output,
    is_view,
    parts_of,
    stored,
)
from gpulint.analysis.queries.stores.stores import bounded, collected, emptying, owner_of
from gpulint.analysis.syntax.nodes import keyword, last_name
from gpulint.answers import Answer, Question, left_open, proven, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Claimed, Cost, Repair, Replace, Report, Rule

if TYPE_CHECKING:
    from gpulint.analysis.asked import Asked
    from gpulint.analysis.domain.values import Value
    from gpulint.analysis.evaluate.frames import Frame
    from gpulint.analysis.project.file import Function
    from gpulint.analysis.queries.networks.forwards import Forward
    from gpulint.analysis.queries.stores.stores import Owner, Round, Store

_COST: Final = Cost("the bytes of the whole output, for each batch", "500 MiB a step for a language model's logits; H200, torch 2.11")  # fmt: skip
_FEW: Final = 16  # rounds


class DeviceAccumulation(Rule):
    """
    ## What it does
    Finds model outputs without a graph that pile up in a container, batch after batch, while they stay on the device.
    The uses of the container are followed, into callers and other files too: it is reported where it ends on the host,
    or where nothing in the project uses what a function returns, and not where it is computed with on the device. Slices
    of one tensor that may be there as a whole are no batches.

    Told in doubt: a container of what a call out of sight gives, which is joined, or looked at item by item, when the
    loop is over, in this function, in a helper or in another method. Who writes `torch.cat(outputs).cpu()` has had
    tensors on the device, all of them at once; how large they are, how many rounds there are and whether the joined
    tensor is needed on the device may be left open. So is how much each round adds, unless it is known to be scores over a
    vocabulary or over every pixel: features and scores of a few classes rarely come to much.
    With a doubt it also tells of lists that are extended with a batch's tensor, one view for each sample, of detached
    tensors handed to a replay memory as priorities, and of pictures that are read from files and moved to the GPU all of them,
    though a loop looks at them one by one.

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
        return torch.cat(outputs)
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
        return torch.cat(outputs)
    ```

    ## Fix safety
    The fix inserts `.cpu()`. It is unsafe: what is made from the container afterwards is on the CPU too. Nothing is offered
    where that may be needed on the device, or where nothing shows that tensors are kept.
    """

    code = "GPU102"
    name = "device-accumulation"
    severity = Severity.WARNING
    runtime_claim = Claim("drift")
    doubts = True
    triggers = (
        (b"torch", b"lightning"),
        (
            b"no_grad",
            b"inference_mode",
            b"detach",
            b"set_grad_enabled",
            b"_step(",
            b"numpy()",
            b".extend(",
            b".data",
            b"Image.open",
            b"imread",
            b"read_image",
        ),
        (b"append", b"extend", b"insert", b"+=", b"] =", b"cat(", b"stack(", b"_priorit"),
        (b"for ", b"while ", b"self."),
        (b"cuda", b".to(", b"device", b"gpu", b"lightning", b"accelerat"),
    )
    asks = True

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        told: set[Any] = set()
        for function in (asked.file.body, *asked.file.functions):
            for store in (*stored(asked.evaluator, function), *collected(asked.evaluator, function)):
                for leaf in parts_of(asked.evaluator, store):
                    yield from _claimed(asked, store, leaf, told)


def _claimed(asked: Asked, store: Store, leaf: Any, told: set[Any]) -> Iterator[Claimed]:
    """The claim of one value that is stored, once: where it is put, or where it is given to what puts it into its own."""
    if leaf in told or not _may_pile_up(asked, store, leaf):
        return
    owner = owner_of(asked.evaluator, store.container, store.frame, store.at)
    at = _place(asked, store, owner)
    within = store.frame.caller is not None and owner.kind == "local" and owner.frame is store.frame
    if at is None or within:  # what a function keeps for itself is asked about with that
        return
    runs = behind(asked.evaluator, leaf, store.frame)
    answers = until_refuted(_answers(asked, store, leaf, runs, owner))
    if answers[-1].verdict.value != "refuted":
        told.add(leaf)
    yield Claimed(at, owner.key, answers, partial(_report, asked, at, store, leaf, owner))


def _place(asked: Asked, store: Store, owner: Owner) -> Any:
    """Where a store is told: what puts a value into its own container is told where that is handed in."""
    own = [one for one, where in store.frame.chain() if asked.is_here(where)]
    outer = owner.frame is not store.frame and not owner.attributes
    if asked.is_here(store.frame) and (outer or not own):
        return store.at
    return own[-1] if own else None


def _may_pile_up(asked: Asked, store: Store, leaf: Any) -> bool:
    """Whether a store adds a tensor to others: beside them, or joined with them."""
    value = _value(asked, store, leaf)
    if value.kind not in ("tensor", "unknown") or value.size == "scalar":
        return False
    made = behind(asked.evaluator, leaf, store.frame) if value.graph else []
    if value.graph and not (
        made and all(grad_mode(asked.evaluator, one.call, one.frame).mode == "off" for one in made)
    ):
        return False
    if store.way == "added":
        calls = [one for one in ast.walk(leaf) if isinstance(one, ast.Call)]
        return is_buffer(asked.evaluator, store) or any(last_name(one.func) in JOINING for one in calls)
    return store.way in ("put", "slot", "returned")


def _value(asked: Asked, store: Store, leaf: Any) -> Value:
    """What is stored, each by itself."""
    value = asked.evaluator.value_of(leaf, store.frame)
    return asked.evaluator.element(value) if holds_several(asked.evaluator, store, leaf) else value


def _answers(asked: Asked, store: Store, leaf: Any, runs: list[Forward], owner: Owner) -> Iterator[Answer]:
    """On what the claim stands that a place takes in large tensors of a device, round after round, for the host."""
    yield from _of_value(asked, store, leaf, runs)
    yield from _of_device(asked, leaf, store.frame, runs)
    if store.way == "returned":
        yield left_open(Question.READS, "a framework keeps it until the epoch ends, and whoever reads it may want it there")
    else:
        yield from _of_owner(asked, store, owner)
        yield from _of_rounds(asked, store, owner)
        yield from _of_ends(asked, store, leaf, owner, bool(runs) or _is_unseen(asked, leaf, store.frame))
    yield from reached(asked.evaluator, store.frame.function)


def _of_value(asked: Asked, store: Store, leaf: Any, runs: list[Forward]) -> Iterator[Answer]:
    evaluator, frame = asked.evaluator, store.frame
    if _value(asked, store, leaf).kind == "unknown" and not is_of_output(evaluator, leaf, frame):
        yield refuted(Question.TENSOR, "it is not shown to be a tensor")
    if store.elements and leaf is store.value and is_of_output(evaluator, leaf, frame):
        yield refuted(Question.TENSOR, "what the network gives may be a list")
    if not runs and _is_unseen(asked, leaf, frame):
        yield left_open(Question.TENSOR, "what makes it is not seen, nor that it is a network")
    if is_number_each(evaluator, leaf, frame):
        yield refuted(Question.SIZE, "it is a number for each sample, or a few")
    if is_dense(evaluator, leaf, frame):
        yield proven(Question.SIZE, "it has values for each token, or for each pixel")
    else:
        yield left_open(
            Question.SIZE, "how much each round adds, and how many there are, the code does not say"
        )


def _is_unseen(asked: Asked, leaf: Any, frame: Frame) -> bool:
    evaluator = asked.evaluator
    return any(is_unseen_output(evaluator, one, where) for one, where in made_of(evaluator, leaf, frame))


def _of_device(asked: Asked, leaf: Any, frame: Frame, runs: list[Forward]) -> Iterator[Answer]:
    evaluator = asked.evaluator
    ways = [one.device for one in evaluator.ways(leaf, frame)]
    if "host" in ways:
        yield refuted(Question.DEVICE, "it is moved to the host before")
    if _is_moved_on_request(asked, leaf, frame):
        yield refuted(Question.MEANT, "it is moved to a device that the caller chooses for that")
    moved = any(is_move(evaluator, one, where) for one, where in made_of(evaluator, leaf, frame))
    places = [placed(evaluator, one.expression, one.frame) for one in runs]
    if "cuda" in ways or moved or any(one.device != "host" and one.how == "moved" for one in places):
        yield proven(Question.DEVICE, "it is made on the GPU, and nothing moves it to the host")
    elif frame.function.name in BATCH_HOOKS and frame.function.cls is not None and runs:
        yield proven(Question.DEVICE, "a framework brings the network to the GPU")
    else:
        yield refuted(Question.DEVICE, "nothing in sight is on a GPU")


def _is_moved_on_request(asked: Asked, leaf: Any, frame: Frame) -> bool:
    """Whether what a network has given is moved once more, to a device that a parameter names and that is not known."""
    for node, where in made_of(asked.evaluator, leaf, frame):
        moves = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to"
        if (
            moves
            and asked.evaluator.calling.device(node, where) == "?"
            and behind(asked.evaluator, node.func.value, where)
        ):
            given = [one for one in (*node.args[:1], keyword(node, "device")) if isinstance(one, ast.Name)]
            kinds = {one.kind for name in given for one in where.flow.reaching(name)}
            beside = [one for call in where.flow.calls.get("to", ()) if call is not node for one in call.args]
            if kinds == {"parameter"} and not {ast.unparse(one) for one in given} & {
                ast.unparse(one) for one in beside
            }:
                return True
    return False


def _of_owner(asked: Asked, store: Store, owner: Owner) -> Iterator[Answer]:
    evaluator = asked.evaluator
    function = owner.frame.function
    if owner.kind == "local" and function.cls is not None and function.name in {"forward", *BATCH_HOOKS}:
        yield refuted(Question.OUTLIVES, f"`{owner.key}` lives for one batch")
    by = bounded(evaluator, store)
    if by is not None:
        yield refuted(Question.OUTLIVES, f"`{owner.key}` holds no more than a few", by)
    gone = emptied(evaluator, asked.multiplicity, owner)
    if gone is not None and gone.when == "step":
        yield refuted(Question.OUTLIVES, f"`{owner.key}` is emptied in each step", gone.by)
    flow = owner.frame.flow
    for by in emptying(owner.key, owner.key, owner.frame):
        if set(flow.loops(by)) & {one.loop for one in owner.rounds if one.frame is owner.frame}:
            yield refuted(Question.OUTLIVES, f"`{owner.key}` is emptied as it is filled", by)
    if isinstance(store.value, ast.IfExp) and asked.multiplicity.counts(store.value.test, store.frame):
        yield refuted(Question.OUTLIVES, f"`{owner.key}` begins anew every so many rounds", store.value)
    if store.way == "slot" and not (
        _renews(asked, store, owner) or is_view(evaluator, store.value, store.frame)
    ):
        yield refuted(Question.REPEATS, "each round writes over what the one before has stored")
    yield proven(Question.OUTLIVES, f"`{owner.key}` keeps one for each round")


def _renews(asked: Asked, store: Store, owner: Owner) -> bool:
    """Whether the keys that a value is stored under are others in each round of the outermost loop that stores, and not a ring's."""
    targets = getattr(store.at, "targets", None) or [getattr(store.at, "target", None)]
    flow = store.frame.flow
    loops = [one.loop for one in owner.rounds if one.frame is store.frame and not _is_small(asked, one)]
    target, keys = targets[0], []
    while isinstance(target, ast.Subscript):
        keys.append(target.slice)
        target = target.value
    return bool(loops) and any(_is_new(asked, key, loops[-1], store.frame) for key in keys)


def _is_new(asked: Asked, key: Any, loop: Any, frame: Frame, depth: int = 4) -> bool:
    flow = frame.flow
    if any(isinstance(one, ast.Mod) for one in ast.walk(key)):
        return False
    for node in ast.walk(key) if depth else ():
        for one in flow.reaching(node) if isinstance(node, ast.Name) and node in flow.parents else ():
            if one.kind == "augmented" or (
                one.kind == "loop" and loop in (one.statement, flow.parents.get(one.node))
            ):
                return True
            source = source_of(one) if one.kind in ("assign", "loop") else None
            if (
                source is not None
                and not behind(asked.evaluator, source, frame)
                and _is_new(asked, source, loop, frame, depth - 1)
            ):
                return True
    return False


def _is_small(asked: Asked, one: Round) -> bool:
    """Whether the rounds of a loop are few, or about the parts of a network or of what one gives."""
    count = trips(asked.evaluator, one.loop, one.frame)
    if (count is not None and count <= _FEW) or asked.steps.is_over_parts(one.loop, one.frame):
        return True
    iterated = getattr(one.loop, "iter", None) or getattr(
        getattr(one.loop, "generators", [None])[0], "iter", None
    )
    return iterated is not None and bool(behind(asked.evaluator, iterated, one.frame))


def _of_rounds(asked: Asked, store: Store, owner: Owner) -> Iterator[Answer]:
    rounds = _rounds(asked, owner)
    if not rounds and owner.rounds and owner.kind == "local":
        yield refuted(Question.REPEATS, "its rounds are few, or about the parts of a network")
    if not rounds:
        rates = {one.rate for one in asked.multiplicity.of(owner.at, owner.frame)}
        if owner.kind == "local" or not rates & {"step", "every nth", "?"}:
            yield refuted(Question.REPEATS, "no loop runs it")
        elif "step" not in rates:
            name = owner.frame.function.name
            yield left_open(Question.REPEATS, f"whether `{name}` is called for each batch is not seen")
    if owner.birth is not None and not _over_batches(asked, owner):
        yield refuted(Question.OUTLIVES, f"`{owner.key}` is made anew in each round of a loop", owner.birth)
    if any(_leaves_early(one) for one in rounds):
        yield refuted(Question.REPEATS, "its loop ends after as many rounds as it is told")


def _rounds(asked: Asked, owner: Owner) -> list[Round]:
    return [one for one in owner.rounds if not _is_small(asked, one)]


def _over_batches(asked: Asked, owner: Owner) -> bool:
    return any(is_over_batches(asked.evaluator, one.loop, one.frame) for one in _rounds(asked, owner))


def _leaves_early(one: Round) -> bool:
    """Whether a condition on the count of rounds ends a loop."""
    flow = one.frame.flow
    for node in ast.walk(one.loop):
        if (
            isinstance(node, ast.Break)
            and isinstance(owner := flow.blocks[node].owner, ast.If)
            and one.loop in flow.loops(owner)
        ):
            names = [
                each for each in ast.walk(owner.test) if isinstance(each, ast.Name) and each in flow.parents
            ]
            if isinstance(owner.test, ast.Compare) and any(
                each.kind == "loop" and each.statement is one.loop
                for name in names
                for each in flow.reaching(name)
            ):
                return True
    return False


def _of_ends(asked: Asked, store: Store, leaf: Any, owner: Owner, made: bool) -> Iterator[Answer]:
    """What is done with all of it, and whether the loop that fills it has something new in each of its rounds for that."""
    found = ends(asked.evaluator, store, leaf, owner)
    if found.array:
        yield refuted(
            Question.DEVICE, "it becomes an array as it is, which nothing on a GPU does", found.array[0].node
        )
    if found.ids:
        yield refuted(Question.SIZE, "it is read as whole numbers", found.ids[0].node)
    if not made and (not found.each or found.host or owner.birth is not None):
        yield refuted(Question.READS, "no network makes it, and it is not looked at one by one")
    if found.wanted and made:
        yield refuted(
            Question.READS, "it is computed with on the device, all of it together", found.wanted[0].node
        )
    to_host = (*found.host, *found.saved)
    batches = _over_batches(asked, owner)
    rounds = [one for one in _rounds(asked, owner) if one.frame is store.frame and not batches]
    inputs = {input_of(asked.evaluator, leaf, one.loop, one.frame) for one in rounds}
    if "fixed" in inputs:
        yield refuted(Question.REPEATS, "each round computes it of the same")
    if "slice" in inputs and not to_host:
        yield refuted(Question.REPEATS, "they are slices of one tensor, which may be there as a whole")
    if to_host:
        yield proven(Question.READS, "all of it goes to the host", to_host[0].node)
    elif found.unseen:
        if "made" in inputs:
            yield refuted(
                Question.READS, "what becomes of all of it is not seen, nor that its rounds are many"
            )
        yield left_open(Question.READS, "what becomes of all of it is not seen")
    elif found.reads:
        yield refuted(Question.READS, "it is reduced on the device, and only numbers of it are read")


def _report(asked: Asked, at: Any, store: Store, leaf: Any, owner: Owner) -> Report:
    what = quoted(store.frame.function.file.source(leaf), 40)
    return Report(
        at,
        f"`{owner.key}` collects `{what}` of every batch on the device",
        "no graph, but the tensors stay on the device until the container goes",
        _COST,
        repair=partial(_repair, asked, store, leaf, owner),
        subject=owner.key,
    )


def _repair(asked: Asked, store: Store, leaf: Any, owner: Owner) -> Repair | None:
    from gpulint.fix.nodes import method_chain

    to_host = ends(asked.evaluator, store, leaf, owner).host
    if not to_host or store.way == "added" or not asked.is_here(store.frame):
        return None  # `x = torch.cat([x, y])`: what x starts from would have to move as well
    node = asked.node(leaf)
    change = Replace(node, method_chain(node, ("cpu",)))
    return Repair(
        "unsafe",
        "keep the copy on the host: `.cpu()`",
        (change,),
        f"what reads `{owner.key}` finds tensors on the CPU",
    )
