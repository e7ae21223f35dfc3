from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from gpulint.analysis.asked import Asked
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.queries.before import first_before
from gpulint.analysis.queries.processes import by_every_process, tells_processes_apart
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.queries.settings import VISIBLE, settings
from gpulint.analysis.syntax.nodes import argument, keyword, last_name
from gpulint.answers import Answer, Question, left_open, proven, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.rule import Claimed, Cost, RelatedNode, Report, Rule


class LateSetDevice(Rule):
    """
    ## What it does
    Finds `torch.cuda.set_device(rank)` behind something that has used the GPU: a tensor or a network that went to `cuda`
    without a number, a call that works on the current card, or a barrier of NCCL. Programs that limit `CUDA_VISIBLE_DEVICES` are not
    reported, nor what goes to `cuda:{rank}`.

    With a doubt it also tells of programs of which it is not shown that several processes run them.

    ## Why is this bad
    Until a card is chosen the first one is current. Every rank makes a context there, and leaves it and what it has put
    there on card 0 for as long as it runs: the first card is full before the others, and seven ranks of eight take
    memory that rank 0 needs.

    ## What it costs
    What the second of two ranks takes of card 0, and keeps, although it chooses card 1 right after (NVIDIA H200, torch 2.11):

    | before `set_device` | of card 0 |
    |---|---|
    | `torch.cuda.synchronize()`, `mem_get_info()`, an event that is recorded | 524 MiB |
    | `torch.zeros(1).cuda()` | 526 MiB |
    | `torch.cuda.Stream()` | 594 MiB |
    | `torch.zeros(1, device="cuda")` | 618 MiB |
    | `is_available()`, `device_count()`, `manual_seed_all()`, `init()`, `current_device()`, `get_device_name()`, `empty_cache()` | 0 B |
    | `torch.zeros(1, device=f"cuda:{rank}")` | 0 B |

    A barrier of NCCL before `set_device` makes a context on card 0 as well, `init_process_group` alone does not.

    ## Example
    ```python
    import os

    import torch
    import torch.distributed as dist
    from torch import nn

    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    model = nn.Linear(8, 2).cuda()
    torch.cuda.set_device(local_rank)
    model = nn.parallel.DistributedDataParallel(model.cuda())
    ```

    ## Use instead
    ```python
    import os

    import torch
    import torch.distributed as dist
    from torch import nn

    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    model = nn.Linear(8, 2).cuda()
    model = nn.parallel.DistributedDataParallel(model.cuda())
    ```

    ## Fix safety
    There is no automatic fix: what is made between the two calls is on the rank's own card then, and may be meant for the first.
    """

    code = "GPU605"
    name = "late-set-device"
    runtime_claim = Claim("context", device_only=True)
    triggers = ((b"set_device",), (b"cuda",))
    doubts = True

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for function, call in asked.file.calls_named("set_device"):
            frame = asked.root(function)
            if _chooses(asked, call, frame):
                first = first_before(asked.evaluator, call, frame, partial(_settles, asked))
                if first is not None:
                    answers = until_refuted(_answers(asked, call, frame, *first))
                    yield Claimed(
                        call, "torch.cuda.set_device", answers, partial(_report, asked, call, first[0])
                    )


def _chooses(asked: Asked, call: ast.Call, frame: Frame) -> bool:
    return asked.evaluator.does(call, frame) == "chooses card"


def _settles(asked: Asked, call: ast.Call, frame: Frame) -> bool:
    """Whether a call chooses a card, or works on the one that is current, whichever that is."""
    evaluator = asked.evaluator
    row = evaluator.row_of(call, frame) or evaluator.table.own("tensor", last_name(call.func))
    if row is None or row.does == "chooses card":
        return row is not None
    if row.starts == "nccl":
        return keyword(call, "device_ids") is None and _is_over_nccl(asked)
    where = keyword(call, "device") if row.device == "keyword" else argument(call, 0, "device")
    if where is None:
        return row.starts == "context" or (row.device == "cuda" and isinstance(call.func, ast.Attribute))
    return row.device in ("keyword", "argument") and evaluator.value_of(where, frame).const == "cuda"


def _is_over_nccl(asked: Asked) -> bool:
    """Whether the file's process groups are of NCCL, and are not told their card when they are made."""
    made = asked.file.calls_named("init_process_group")
    given = ((argument(call, 0, "backend"), asked.root(function)) for function, call in made)
    values = (asked.evaluator.value_of(one, frame) for one, frame in given if one is not None)
    told = any(keyword(call, "device_id") for _, call in made)
    return not told and any(one.const == "nccl" for one in values)


def _answers(asked: Asked, call: ast.Call, frame: Frame, first: ast.Call, where: Frame) -> Iterator[Answer]:
    evaluator = asked.evaluator
    if _chooses(asked, first, where):
        yield refuted(Question.DEVICE, "a card may have been chosen before", first, asked.path_of(first))
    yield proven(Question.DEVICE, "what has been used is card 0, of which nothing else is said")
    if any(one.variable == VISIBLE for one in settings(evaluator, asked.file)):
        yield refuted(Question.DEVICE, "the program limits the cards that a process sees")
    card = argument(call, 0, "device")
    if card is None or isinstance(evaluator.value_of(card, frame).const, (int, str)):
        yield refuted(Question.REACHED, "it is the same card for all processes")
    elif tells_processes_apart(evaluator, card, frame):
        yield proven(Question.REACHED, "each of several processes has a card of its own")
    else:
        unknown = left_open(Question.REACHED, "that several processes run it is not shown")
        yield by_every_process(evaluator, call, frame) or unknown
    yield from reached(evaluator, frame.function)


def _report(asked: Asked, call: ast.Call, first: ast.Call) -> Report:
    path = asked.path_of(first)
    used = RelatedNode("the first card is used here", None if path else first, path or None, first.lineno)
    return Report(
        call,
        "the card is chosen when the process has used the first one already",
        "what goes to `cuda` before that goes to card 0: every rank makes a context there, which stays as long as it runs",
        Cost(
            "a context on card 0 for each rank that has another one",
            "526 MiB for `torch.zeros(1).cuda()`, 618 MiB for what is made there; H200, torch 2.11",
        ),
        related=(used,),
    )
