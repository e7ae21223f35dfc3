from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Report, Rule

if TYPE_CHECKING:
    from gpulint.analysis.file.asking import FileFacts
    from gpulint.answers import Considered


class CollectorOff(Rule):
    """
    ## What it does
    Finds `gc.disable()` in a program that trains, where nothing in the file collects by hand, switches the collector on
    again or freezes what the set-up has made. Always with a doubt: where no step makes reference cycles it costs nothing.

    ## Why is this bad
    A tensor is freed with its last reference, but objects that know each other keep theirs until the collector comes:
    states with their owners, exceptions with their frames, a second derivative with its first. Without it what they hold
    stays on the GPU. Programs that switch it off because it stops ranks at different times collect every so many steps.

    ## What it costs
    A training of an 8-layer MLP whose outputs end in reference cycles: 128 MiB at the peak after 16 steps, and more with every
    further one; with the collector on 100 MiB, collected every 4 steps 106 MiB. The same without cycles: nothing, 100 MiB in
    all three (NVIDIA H200, torch 2.11).

    ## Example
    ```python
    import gc

    import torch
    from torch import nn

    model = nn.Linear(8, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    gc.disable()
    for inputs in loader:
        loss = model(inputs.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ```

    ## Use instead
    ```python
    import gc

    import torch
    from torch import nn

    model = nn.Linear(8, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs in loader:
        loss = model(inputs.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ```

    Or keep it off, and call `gc.collect()` every few hundred steps.

    ## Fix safety
    Unsafe: the collector runs in the midst of steps then, which somebody may have wanted to avoid.
    """

    code = "GPU408"
    name = "collector-off"
    severity = Severity.INFO
    runtime_claim = Claim("garbage")
    triggers = ((b"gc",), (b"disable",), (b"torch", b"lightning"))
    doubts = True

    def considers(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Considered]:
        from gpulint.rules.detect.lifetimes.suspicion import considered
        from gpulint.rules.detect.placing.collector import collectors_off

        yield from considered(facts.ask(collectors_off))

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        from gpulint.rules.detect.lifetimes.suspicion import told
        from gpulint.rules.detect.placing.collector import collectors_off

        yield from told(facts.ask(collectors_off), set())
