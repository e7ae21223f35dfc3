from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpulint.rules.detect.alloc_conf import VISIBLE, option_names
from gpulint.rules.detect.environment import LateSetting

from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Cost, RelatedNode, Report, Rule

if TYPE_CHECKING:
    from gpulint.analysis.file.asking import FileFacts


class LateAllocConf(Rule):
    """
    ## What it does
    Finds environment variables of the allocator, and `CUDA_VISIBLE_DEVICES`, that a program sets for itself after
    it has started CUDA; and `backend:cudaMallocAsync` set after `import torch`. Programs that start others may
    set them for those and are not reported.

    ## Why is this bad
    torch reads the allocator's variable once, when CUDA starts, and the driver reads `CUDA_VISIBLE_DEVICES` once.
    Whatever is set later is ignored without a word. The backend is read when torch is imported.

    ## What it costs
    What the setting should have saved (GPU601): on batches of varying length 22.4 GiB reserved where
    `expandable_segments:True` takes 6.4 GiB (NVIDIA H200, torch 2.11). After `torch.cuda.set_device()`,
    `torch.cuda.get_device_name()` or the first tensor on the GPU that setting was not taken any more; after
    `torch.cuda.is_available()`, `device_count()` and `manual_seed()` it was. `CUDA_VISIBLE_DEVICES` was not taken after
    `is_available()` either, and limits no memory. A backend (`backend:cudaMallocAsync`) set after `import torch` ended
    in an internal assertion, or was not taken.

    ## Example
    ```python
    import os

    import torch
    from torch import nn

    model = nn.Linear(8, 2).cuda()
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    ```

    ## Use instead
    ```python
    import os

    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"

    import torch
    from torch import nn

    model = nn.Linear(8, 2).cuda()
    ```

    ## Fix safety
    There is no automatic fix: what the setting depends on may not be known earlier.
    """

    code = "GPU602"
    name = "late-alloc-conf"
    severity = Severity.WARNING
    runtime_claim = Claim("setting", device_only=True)
    triggers = ((b"ALLOC_CONF", b"CUDA_VISIBLE_DEVICES"), (b"environ", b"putenv"), (b"cuda",))

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        from gpulint.rules.detect.environment import late_settings

        for late in facts.ask(late_settings):
            yield _report(facts, late)


def _report(facts: FileFacts, late: LateSetting) -> Report:
    name = late.setting.variable
    claim = replace(LateAllocConf.runtime_claim, options=option_names(late.setting.text))
    if late.since is None:
        return Report(
            late.setting.stmt,
            f"the backend in `{name}` is read when torch is imported, which has happened by now",
            "torch compares it with the one in use when CUDA starts, and stops",
            "an internal assertion when the first tensor goes to the GPU (torch 2.11)",
            subject=name,
            claim=claim,
        )
    who = "the driver" if name == VISIBLE else "torch"
    cost = (
        Cost("all devices stay visible")
        if name == VISIBLE
        else Cost(
            "all that the setting was to save",
            "22.4 GiB reserved where `expandable_segments:True` takes 6.4 GiB; H200, torch 2.11",
        )
    )
    return Report(
        late.setting.stmt,
        f"`{name}` has no effect any more: `{facts.source(late.since)}` has started CUDA",
        f"{who} reads the variable once, at the start",
        cost,
        subject=name,
        claim=claim,
        related=(RelatedNode("CUDA is started here", late.since),),
    )
