from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from gpulint.analysis.asked import Asked
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.queries.multiplicity import Repeats
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.queries.stores.filled import Filled, Place, extent, filled
from gpulint.analysis.queries.stores.on_device import devices, operations
from gpulint.analysis.queries.waits import goes_on
from gpulint.analysis.syntax.flow import Block
from gpulint.analysis.syntax.nodes import LOOPS, arguments, called_on, dotted, key_of, keyword, last_name
from gpulint.answers import Answer, Question, left_open, proven, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.rule import Claimed, Cost, Repair, Replace, Report, Rule

_NEVER: Final = 1000  # no argument stands there: it is given by name
_MANY: Final = 1 << 18  # numbers: 1 MiB of float32
# What is said of the tensor that is moved, and not of its copy.
_OF_THE_FIRST: Final = frozenset({"requires_grad", "pin_memory", "out", None})
# Why it is unsafe to fill it there, by how it is filled.
_WHY: Final = {
    "alike": "", "counts up": "the last digit of what the GPU makes may be another",
    "draws": "the GPU draws other random numbers", "draws evenly": "the GPU draws other random numbers",
}  # fmt: skip


class RepeatedTransfer(Rule):
    """
    ## What it does
    Finds tensors that a program fills itself, with zeros, ones, counts or random numbers, on the host, and moves to the GPU in every
    step, `torch.zeros(n).to(device)`: in a training loop, in the forward of a network or a loss, and in whatever else a step calls. To copy
    it into a tensor that is on the GPU, `state.copy_(torch.zeros(n))`, moves it too. And tensors moved in every step of a loop that are
    the same in each; and what is repeated on the host, and moved with all its copies: `features[i].repeat(k, 1, 1).to(device)`. And what is padded by way of the host:
    `padded = torch.zeros(n, length, size); padded[:, : x.shape[1]] = x; x = padded.to(x.device)` takes what is on the GPU there and back.

    It is a warning where the size is shown to matter: a million bytes by the text, a shape made of three sizes of other tensors, or that of
    pictures or sequences on their way through a network. What has two dimensions and more, of sizes that are not shown (one-hot labels, a mask, the first
    states of a decoder), few numbers by the text, or one for each sample or place, is a note with
    low confidence: that costs a wait and little memory, which may be nothing in a step that waits anyhow. So are moves under a condition that asks for more than a GPU, those in loops that
    do not train, and places of which it is not shown that they are tensors on the host, and large tensors in functions that nobody is seen to call. It is a note
    in classes that nothing in the program makes. It is silent about few numbers in what a step
    calls; about what is moved every so many steps; about what data of the host is put into before it is moved, which has to be brought there; in loops
    that have as few rounds as the text says; and about small tensors of random numbers.

    ## Why is this bad
    The host fills memory at a small part of the GPU's speed, and the bus is slower still. A copy from ordinary memory of the host also waits
    until the GPU has done all it was given before, and so the GPU waits for what the host gives it next; that the batch is moved too does
    not hide it.

    ## What it costs
    No memory, and little time where the tensor is small. A step of a 4-layer language model, 64 numbers for its loss, or four million
    (NVIDIA H200, torch 2.11):

    | | 64 numbers, batch on the GPU | batch moved as well | 4,194,304 numbers, batch on the GPU |
    |---|---|---|---|
    | `torch.ones(n).to(device)` in every step | 21.28 ms | 21.68 ms | 23.09 ms |
    | `torch.ones(n, device=device)` in every step | 20.59 ms | 21.14 ms | 20.53 ms |
    | moved once | 20.57 ms | 21.21 ms | 20.51 ms |

    Where it is as large as what a network computes with, it may take most of the step:

    | a training step, in which are | filled on the host, moved | filled on the GPU |
    |---|---|---|
    | masks of the full size of what six layers give, of spectrograms | 132.97 ms | 48.48 ms |
    | the cost volume of two pictures | 275.88 ms | 76.40 ms |
    | what four LSTMs give, each padded on its way to the next | 267.57 ms | 168.37 ms |
    | a detector's targets, weights and zeros, for each picture | 42.10 ms | 4.41 ms |
    | one-hot labels of all anchors, `torch.eye(n)[labels.cpu()]` | 21.44 ms | 1.16 ms |
    | an index of the values' size, in three layers | 25.02 ms | 1.97 ms |
    | features beside 128 candidates, of an evaluation: repeated and moved; moved and repeated | 22.48 ms | 5.56 ms |

    The peak is the same. A mask of one row for each recording, which torch broadcasts, takes as long as the full one and 2.11 GiB at
    the peak instead of 2.47 GiB.

    ## Example
    ```python
    import torch
    from torch import nn

    device = torch.device("cuda")
    model = nn.Linear(512, 128).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    for inputs in loader:
        out = model(inputs)
        loss = nn.functional.mse_loss(out, torch.zeros(4096, 128).to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn

    device = torch.device("cuda")
    model = nn.Linear(512, 128).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    for inputs in loader:
        out = model(inputs)
        loss = nn.functional.mse_loss(out, torch.zeros(4096, 128, device=device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ```

    ## Fix safety
    Making zeros, ones and the like on the device is safe: they are the same numbers. Unsafe for ranges of numbers, whose last
    digit may be another there, for random numbers, which another generator draws, and where what is given to `to` may be no device.
    Where that is a tensor, `.type_as(x)`, what is made takes its type as well.
    Nothing is offered where the tensor has a name before it is moved or is computed with, for constructors such as `torch.FloatTensor`,
    which make none on a GPU, and for what is the same in every step: move it before the loop.
    """

    code = "GPU505"
    name = "repeated-transfer"
    runtime_claim = Claim("transfer", device_only=True)
    triggers = ((b".to(", b".cuda(", b".type", b".copy_("), (b"torch",))
    doubts = True

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        rows = asked.evaluator.table.knows("tensor").items()
        brings = ("cuda", "argument")
        moves = [name for name, row in rows if row.device in brings or row.does == "copies into"]
        calls = (found for name in moves for found in asked.file.calls_named(name))
        for function, call in sorted(calls, key=lambda one: (one[1].lineno, one[1].col_offset)):
            move = _moved(asked, call, asked.root(function))
            if move is not None:
                yield Claimed(call, move.name, until_refuted(move.answers()), partial(_report, move))


def _moved(asked: Asked, call: Any, frame: Frame) -> _Move | None:
    """What a call moves to a device in the rounds of a loop, or, where it fills that itself, in every step of who calls its function."""
    device = _device(asked, call, frame)
    if device is None or asked.evaluator.is_dead(call, frame):
        return None
    into = last_name(call.func) == "copy_"
    moved = call.args[0] if into else call.func.value
    made = filled(asked.evaluator, moved, frame)
    back = [_back(asked, one, call, frame) for one in made.data] if made is not None else []
    if None in back:
        made = None  # what is put into it has to be brought there
    loop = next((one for one in frame.flow.loops(call) if _runs_networks(asked, one, frame)), None)
    copies = _repeated(asked, moved, frame) if made is None and not into else None
    if copies is not None and loop is not None and loop not in frame.flow.loops(copies):
        copies = None  # they are the same in each round
    row = asked.evaluator.row_of(moved, frame) if isinstance(moved, ast.Call) else None
    is_kept = loop is not None and ((row is not None and row.gives == "fresh") or key_of(moved) is not None)
    if (made or copies) is None and (into or not is_kept):
        return None
    ways = asked.multiplicity.of(call, frame) if loop is None else ()
    steps = (one for one in ways if one.rate == "step")
    known = min(steps, key=lambda one: one.work != "train", default=None)  # a training, where there is one
    unseen = (one for one in ways if one.rate == "?" and one.loop is None and not _begins(one, frame))
    rounds = known or next(unseen, None)
    if loop is None and rounds is None:
        return None
    return _Move(asked, call, moved, frame, loop, device, made, into, copies, rounds, back)


def _begins(repeats: Repeats, frame: Frame) -> bool:
    """Whether what leads to a call begins with a constructor, which runs once."""
    return any(one.function.name == "__init__" for one in (frame, *(where for _, where in repeats.calls)))


def _back(asked: Asked, data: Place, call: ast.Call, frame: Frame) -> Answer | None:
    """Whether what is put into a tensor on the host comes from where a call moves that to: it is there, as `y.to(x.device)` says, or may
    be, as a network gives it; None where nothing shows it."""
    node, where = data
    given: Any = call.args[0] if call.args else keyword(call, "device")
    goal = given.value if isinstance(given, ast.Attribute) and given.attr == "device" else given
    flow, key = frame.flow, key_of(goal)
    places = set(devices(asked.evaluator, node, where))
    same = key is not None and key == key_of(node) and set(flow.reaching(goal)) == set(flow.reaching(node))
    if same or "cuda" in places:
        clause = f"`{key_of(node) or 'what is put into it'}` is there, and goes to the host first"
        return proven(Question.DEVICE, clause, node)
    return None


def _repeated(asked: Asked, moved: Any, frame: Frame) -> ast.Call | None:
    """The call that repeats what is moved: `x.repeat(k, 1)`, also where the result is only laid out in another way then."""
    for node, where in operations(asked.evaluator, moved, frame):
        called = last_name(node.func) if isinstance(node, ast.Call) else ""
        row = asked.evaluator.table.own("tensor", called)
        if row is not None and row.size == "more":
            return node if where is frame else None
        if not isinstance(node, ast.Name) and not (row is not None and (row.view or row.does == "lays out")):
            return None
    return None


def _device(asked: Asked, call: Any, frame: Frame) -> str | None:
    """The device that a call moves a tensor to; None where it is no such call."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    row = asked.evaluator.table.own("tensor", call.func.attr)
    if row is not None and row.does == "copies into" and call.args:
        return asked.evaluator.value_of(call.func.value, frame).device
    if row is None or row.device != "argument":
        return "cuda" if row is not None and row.device == "cuda" else None
    return asked.evaluator.calling.device(call, frame)


def _runs_networks(asked: Asked, loop: Any, frame: Frame) -> bool:
    """Whether each round of a loop runs networks, in no loop of its own."""
    direct = (one for one in asked.steps.of(frame.function) if one.loops[:1] == (loop,) and not one.within)
    return isinstance(loop, LOOPS) and any(direct) and not asked.steps.is_over_parts(loop, frame)


@dataclass(frozen=True, slots=True)
class _Move:
    """A call that moves what `moved` gives to a device, in the rounds of a loop, or in those of who calls its function: `rounds`. `made` says
    how the program fills it, where it does, and `copies` what repeats it; `is_into`: it is copied into a tensor that is there."""

    asked: Asked
    call: ast.Call
    moved: Any
    frame: Frame
    loop: Any
    device: str | None
    made: Filled | None
    is_into: bool
    copies: ast.Call | None
    rounds: Repeats | None
    back: list[Any]

    @property
    def names_device(self) -> bool:
        """Whether what it is moved to is a device for certain, wherever that is."""
        given = self.call.args[0] if self.call.args and not self.is_into else keyword(self.call, "device")
        kind = self.asked.evaluator.value_of(given, self.frame).kind if given is not None else "none"
        there = kind == "unknown" and "cuda" in devices(self.asked.evaluator, given, self.frame)
        return kind in ("device", "tensor", "parameter") or there

    @property
    def name(self) -> str:
        if self.copies is not None:
            return self.asked.source(self.copies, 200)
        return key_of(self.moved) or self.asked.called(self.moved if self.made is None else self.made.begun)

    @property
    def is_same(self) -> bool:
        """Whether the tensor is the same in every round: it is made of what the loop leaves alone."""
        if self.loop is None:
            return False
        flow, evaluator = self.frame.flow, self.asked.evaluator
        filling = [name for name, row in evaluator.table.knows("list").items() if row.does]
        into = [one.target for one in flow.stores if self.is_of_round(one.statement)]
        into += [one.func for name in filling for one in flow.calls.get(name, ()) if self.is_of_round(one)]
        changed = {ast.unparse(flow.place(getattr(one, "value", one))).partition("[")[0] for one in into}
        for one in ast.walk(self.moved):
            if isinstance(one, ast.Call) and one is not self.moved:
                if evaluator.value_of(one, self.frame).kind not in ("number", "list"):
                    return False
            elif isinstance(one, ast.expr) and (key := key_of(one)) is not None:
                if key in changed or any(self.is_of_round(each.statement) for each in flow.reaching(one)):
                    return False
        return True

    def is_of_round(self, node: Any) -> bool:
        flow = self.frame.flow
        known = node in flow.blocks or node in flow.parents
        return node is self.loop or (known and self.loop in flow.loops(node))

    def answers(self) -> Iterator[Answer]:
        asked = self.asked
        counted = getattr(self.loop, "iter", None)
        spelled = counted.args if isinstance(counted, ast.Call) else getattr(counted, "elts", [])
        if spelled and all(isinstance(one, ast.Constant) for one in spelled):
            yield refuted(Question.REPEATS, "the loop has as few rounds as the text says", self.loop)
        if self.copies is None and goes_on(asked.evaluator, self.call, self.frame):
            yield refuted(Question.MEANT, "with `non_blocking=True` the host does not wait for the copy")
        if self.device == "host":
            yield refuted(Question.DEVICE, "it is moved to the host")
        yield from self.of_place() if self.made is None else self.of_made(self.made)
        if self.device == "?" and not self.names_device:
            yield left_open(Question.DEVICE, "whether it is moved to a GPU is not shown")
        inside = (test for test, _ in self.frame.flow.conditions(self.call) if self.is_of_round(test))
        if self.loop and any(asked.multiplicity.counts(test, self.frame) for test in inside):
            yield refuted(Question.REPEATS, "it is moved every so many steps, and not in each")
        if not all(map(self.is_about_device, self.frame.flow.around(self.call))):
            yield left_open(Question.REPEATS, "a condition decides whether a step moves it")
        steps = asked.steps.of(self.frame.function)
        trains = any(one.work == "train" and self.loop in one.loops for one in steps)
        if self.rounds is not None and self.rounds.rate == "?":
            yield left_open(Question.REPEATS, "that a loop of steps runs it is not shown")
        elif not trains and self.copies is None and not (self.rounds and self.rounds.work == "train"):
            clause = "how much the rest of a round takes, which does not train, is not shown"
            yield left_open(Question.REPEATS, clause)
        yield self.of_size()
        yield from reached(asked.evaluator, self.frame.function)

    def is_about_device(self, block: Block) -> bool:
        """Whether a block runs in each round, or under a condition that asks no more than whether there is a GPU: all in it moves something."""
        owner = block.owner
        if not isinstance(owner, (ast.If, ast.Try)) or (self.loop and not self.is_of_round(owner)):
            return True
        asks = getattr(owner, "test", None)
        is_none = isinstance(asks, ast.Compare) and isinstance(asks.ops[0], ast.Is)  # `if mask is None:`
        values = (getattr(one, "value", None) for one in block.statements)
        return not is_none and all(_device(self.asked, one, self.frame) is not None for one in values)

    def of_made(self, made: Filled) -> Iterator[Answer]:
        if self.asked.evaluator.value_of(self.moved, self.frame).device != "host":
            yield refuted(Question.DEVICE, "it is not shown to be made on the host")
        numbers, sizes, more = extent(self.asked.evaluator, made.sizes)
        is_matrix = sizes > 1 or (self.is_into and (numbers >= _MANY or sizes + more > 1))
        if made.how.startswith("draws") and not is_matrix:
            yield refuted(Question.MEANT, "its random numbers are new in every step, and are the host's")
        clause = f"`{self.asked.called(made.begun)}` makes a tensor on the host"
        yield proven(Question.TENSOR, clause, made.begun, self.asked.path_of(made.begun))
        yield from self.back

    def of_place(self) -> Iterator[Answer]:
        flow, evaluator = self.frame.flow, self.asked.evaluator
        value, key = evaluator.value_of(self.moved, self.frame), key_of(self.moved)
        is_called = key is not None and any(dotted(one.func) == key for one in flow.every_call)
        if self.copies is None and not self.is_same:
            yield refuted(Question.READS, "it is new in every step, and has to be brought there")
        if is_called or not (value.kind in ("tensor", "unknown", "loaded") or value.assumptions):
            yield refuted(Question.TENSOR, "it is no tensor: a network that has been moved stays there")
        places = set(devices(evaluator, self.moved, self.frame))
        if "cuda" in places:
            yield refuted(Question.DEVICE, "it has been moved before")
        if value.kind != "tensor":
            yield left_open(Question.TENSOR, f"that `{self.name}` is a tensor is not shown")
        if "?" in places:
            yield left_open(Question.DEVICE, f"that `{self.name}` is on the host is not shown")

    def of_size(self) -> Answer:
        """Whether what is moved is large: a megabyte by the text, or as large as what networks compute with, of three sizes and more."""
        evaluator = self.asked.evaluator
        if self.copies is not None and len(self.copies.args) > 2:
            return _little("how large what is repeated is, the code does not say")
        numbers, sizes, more = extent(evaluator, self.made.sizes) if self.made else (1, 0, 1)
        is_all = not (sizes or more)
        if numbers >= _MANY:
            return proven(Question.SIZE, f"it has {numbers:,} numbers" + ("" if is_all else " and more"))
        if sizes > 2:
            return proven(Question.SIZE, "its shape is that of activations, or has three sizes of tensors")
        is_run = self.rounds is None or self.rounds.rate != "?"
        if sizes + more > 1 and (is_run or sizes > 1):
            return _little("it has two dimensions or more: how large they are is not shown")
        if self.rounds is not None and (is_all or not is_run):
            return refuted(Question.SIZE, "it has few numbers, and a step that calls this may wait anyhow")
        little = f"{numbers:,} numbers cost" if is_all else "how much is moved is not shown: a little costs"
        return _little(f"{little} a wait, and no memory")


def _little(clause: str) -> Answer:
    """A step waits for the host elsewhere as well: what is not shown to be much is a doubt."""
    return replace(left_open(Question.SIZE, clause), minor=True)


def _report(move: _Move) -> Report:
    what = "a tensor made on the host" if move.made is not None else f"`{move.name}`"
    if move.made is not None and move.made.data:
        what += f", and `{move.asked.source(move.made.data[0][0])}` from the GPU in it,"
    is_same = move.copies is None and move.is_same
    advice = "move it once, before the loop" if is_same else "make it on the device, with `device=`"
    measured = "132.97 instead of 48.48 ms a step with masks of six layers' outputs, 21.28 instead of 20.59 ms with 64 numbers; H200, torch 2.11"
    if move.copies is not None:
        what, advice = f"each copy of {what}", "move it before it is repeated"
        measured = "22.48 ms for 128 copies that are repeated and moved, 5.56 ms moved and repeated; H200, torch 2.11"
    taken = "a wait for the GPU in every step, and the time that the host and the bus take; no memory"
    return Report(
        move.call,
        f"{what} is moved to the GPU in every step" + (", and is the same in each" if is_same else ""),
        f"the host waits until the GPU has done all it was given before; {advice}",
        Cost(taken, measured),
        repair=lambda: _repair(move),
    )


def _repair(move: _Move) -> Repair | None:
    """`torch.zeros(n, device=device)` for `torch.zeros(n).to(device)`, also where it is given another shape in between."""
    from gpulint.fix.nodes import with_argument

    call, asked, made, inner = move.call, move.asked, move.made, move.moved
    rows = asked.evaluator.table.knows("tensor").items()
    shaping = [name for name, row in rows if row.view or row.size == "more"]
    while (base := called_on(inner, *shaping)) is not None:
        inner = base
    given, takes_one = arguments(call), last_name(call.func) != "cuda"
    if made is None or move.is_into or made.begun is not inner or len(given) != takes_one:
        return None
    if made.how not in _WHY or {one.arg for one in inner.keywords} & _OF_THE_FIRST:
        return None
    text = asked.source(given[0], 200) if given else asked.quoted("cuda")
    why, node = _WHY[made.how], asked.node(inner)
    like = bool(given) and asked.evaluator.value_of(given[0], move.frame).kind in ("tensor", "parameter")
    if like or last_name(call.func) == "type_as":
        if keyword(inner, "dtype") is not None or key_of(given[0]) is None:
            return None
        node, text = with_argument(node, "dtype", f"{text}.dtype", position=_NEVER), f"{text}.device"
    if not why and move.device != "cuda" and not move.names_device:
        why = f"`{text}` may be a type or a tensor, and no device"
    new = with_argument(node, "device", text, position=_NEVER)
    whole = asked.node(move.moved).deep_replace(asked.node(inner), new)
    return Repair.unless(why, "make it on the device", (Replace(asked.node(call), whole),))
