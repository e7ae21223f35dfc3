from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Repair, Replace, Report, Rule

if TYPE_CHECKING:
    from gpulint.rules.detect.placing.moves import Move

    from gpulint.analysis.file.asking import FileFacts
    from gpulint.answers import Considered

_NEVER = 1000  # no argument stands there: it is given by name


class RepeatedTransfer(Rule):
    """
    ## What it does
    Finds tensors that a training loop makes on the host and moves to the GPU in every step, `torch.zeros(n).to(device)`,
    where they could be made there, and tensors moved in every step that are the same in each.

    It is sure of a million bytes and more; a few numbers cost a wait and no memory, which may be nothing in a step that waits
    anyhow. With doubts it also tells of those, of moves under a condition, in loops that do not train, and of places of
    which it is not shown that they are tensors on the host.

    ## Why is this bad
    A copy from ordinary memory of the host waits until the GPU has done all it was given before, and so the GPU waits for what
    the host gives it next. It is one wait more in every step; that the batch is moved too does not hide it.

    ## What it costs
    No memory, and little time where the tensor is small. A step of a 4-layer language model, 64 numbers for its loss, or four million
    (NVIDIA H200, torch 2.11):

    | | 64 numbers, batch on the GPU | batch moved as well | 4,194,304 numbers, batch on the GPU |
    |---|---|---|---|
    | `torch.ones(n).to(device)` in every step | 21.28 ms | 21.68 ms | 23.09 ms |
    | `torch.ones(n, device=device)` in every step | 20.59 ms | 21.14 ms | 20.53 ms |
    | moved once | 20.57 ms | 21.21 ms | 20.51 ms |

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
    digit may be another there, and where what is given to `to` may be no device. For what is the same in every step
    nothing is offered: move it before the loop.
    """

    code = "GPU505"
    name = "repeated-transfer"
    severity = Severity.INFO
    runtime_claim = Claim("transfer", device_only=True)
    triggers = (
        (b".to(", b".cuda("),
        (b"for ", b"while "),
        (b"torch",),
        (b"backward", b".step(", b"no_grad", b"inference_mode", b"eval()"),
    )
    doubts = True

    def considers(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Considered]:
        from gpulint.rules.detect.lifetimes.suspicion import considered
        from gpulint.rules.detect.placing.moves import repeated_moves

        yield from considered(found for _, found in facts.ask(repeated_moves))

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        from gpulint.rules.detect.lifetimes.suspicion import told
        from gpulint.rules.detect.placing.moves import repeated_moves

        if facts.on_gpu:
            found = facts.ask(repeated_moves)
            yield from told(
                (replace(one, repair=partial(_repair, facts, move)) for move, one in found), set()
            )


# What is said of the tensor that is moved, and not of its copy.
_OF_THE_FIRST = frozenset({"requires_grad", "pin_memory", "out", None})


def _repair(facts: FileFacts, move: Move) -> Repair | None:
    """`torch.zeros(n, device=device)` for `torch.zeros(n).to(device)`."""
    from gpulint.analysis.file.lookup import qualified
    from gpulint.analysis.questions.device.origins import device_of_move
    from gpulint.analysis.questions.device.placement import is_gpu
    from gpulint.analysis.torch.making import ALIKE, COPIED, RANDOM
    from gpulint.fix.nodes import with_argument

    if move.made is None or {name for name, _ in move.made.keywords} & _OF_THE_FIRST:
        return None
    full = qualified(facts.analysis, move.function, move.made.func.path) or ""
    given = len(move.call.args) + len(move.call.keywords)
    if full in COPIED or full in RANDOM - ALIKE or given != (move.call.method == "to"):
        return None
    device = device_of_move(move.call) if move.call.method == "to" else None
    text = '"cuda"' if device is None else facts.source(device, 200)
    why = ""
    if full not in ALIKE:
        why = "the last digit of what the GPU makes may be another"
    elif device is not None and not is_gpu(facts.analysis, move.function, device):
        if (device.path or "").rpartition(".")[2] != "device" or "." not in (device.path or ""):
            why = f"`{text}` may be a type or a tensor, and no device"
    new = with_argument(move.made.node, "device", text, position=_NEVER)
    return Repair.unless(why, "make it on the device", (Replace(move.call.node, new),))
