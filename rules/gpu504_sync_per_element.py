from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gpulint.rules.detect.syncs import ElementSync

from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Cost, RelatedNode, Report, Rule

if TYPE_CHECKING:
    from gpulint.analysis.file.asking import FileFacts


class SyncPerElement(Rule):
    """
    ## What it does
    Finds loops inside a step that read a tensor of that step element by element: `.item()`, `float()`, `.cpu()` or
    `.tolist()` of one element at a time. One `.item()` a step is in order and not reported. How many elements
    there are, the code seldom says: it is told with that doubt.

    ## Why is this bad
    Each read waits for the GPU and copies a few bytes on its own. The whole tensor takes one wait and one copy.

    ## What it costs
    A step with 64 `.item()` takes 2.19 ms, with one `.tolist()` 1.71 ms (8-layer MLP, NVIDIA H200, torch 2.11).

    ## Example
    ```python
    import torch
    from torch import nn

    model = nn.Linear(8, 1).cuda().eval()


    @torch.no_grad()
    def scores(loader):
        rows = []
        for inputs, names in loader:
            predicted = model(inputs.cuda()).squeeze(1)
            for index, name in enumerate(names):
                rows.append((name, predicted[index].item()))
        return rows
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn

    model = nn.Linear(8, 1).cuda().eval()


    @torch.no_grad()
    def scores(loader):
        rows = []
        for inputs, names in loader:
            predicted = model(inputs.cuda()).squeeze(1).tolist()
            for index, name in enumerate(names):
                rows.append((name, predicted[index]))
        return rows
    ```

    ## Fix safety
    There is no automatic fix: what else uses the tensor decides whether a list can take its place.
    """

    code = "GPU504"
    name = "sync-per-element"
    severity = Severity.WARNING
    runtime_claim = Claim("time", ("Tensor.item", "Tensor.tolist", "Tensor.cpu"))
    doubts = True
    triggers = (
        (b"torch", b"lightning"),
        (b".item()", b"float(", b"int(", b".cpu()", b".tolist()"),
        (b" in range(", b" in enumerate(", b" in zip(", b".detach():", b" for "),
        (b".backward(", b".eval()", b"no_grad", b"inference_mode", b"training_step"),
        (b"cuda", b"device", b"accelerator", b"fabric", b"gpu"),
    )

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        from gpulint.rules.detect.syncs import element_syncs

        if not facts.on_gpu:
            return
        for sync in facts.ask(element_syncs):
            yield _report(facts, sync)


def _report(facts: FileFacts, sync: ElementSync) -> Report:
    first, *others = sync.reads
    return Report(
        first,
        f"`{facts.source(first)}` waits for the GPU once for each element of `{facts.source(sync.tensor)}`",
        "take the whole tensor to the host before the loop: `.tolist()`, or `.cpu()`",
        Cost(
            "a wait for the GPU for each element, in every step",
            "2.19 ms a step with 64 `.item()`, 1.71 ms with one `.tolist()`, for an 8-layer MLP; H200, torch 2.11",
        ),
        doubts=("how many elements there are, the code does not say",),
        subject=facts.source(sync.tensor, limit=200),
        related=tuple(RelatedNode("and so does this", other) for other in others[:3]),
    )
