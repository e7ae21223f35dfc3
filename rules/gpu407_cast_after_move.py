from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Report, Rule

if TYPE_CHECKING:
    from gpulint.analysis.file.asking import FileFacts
    from gpulint.answers import Considered


class CastAfterMove(Rule):
    """
    ## What it does
    Finds networks that are moved to the GPU in float32 and cast to a narrower type there: `net.cuda().half()`,
    `net.to(device).to(torch.bfloat16)`, also in two statements with nothing between them that computes with the network.

    It is told without a doubt where the network is seen to be large and to be made in float32. With a doubt it also tells of
    networks of unknown size, of those that transformers loads without a `dtype`, of casts under a condition, and of
    programs that train: what those take later may be more.

    ## Why is this bad
    All wide weights are on the GPU before the first is cast, so the program needs more than twice the memory that the network
    takes afterwards; and what they took stays reserved. A network that fits in half precision runs out of memory while
    it is loaded. Cast first, or with `.to(device, dtype)`, each tensor arrives in its narrow type.

    ## What it costs
    A language model of 173 MiB in float32: peak 205 MiB and 258 MiB reserved afterwards where it is moved and then cast, to
    float16 as to bfloat16; 88 MiB and 140 MiB where it is cast first or by the call that moves it, in which time it is there
    a little sooner as well: 28.3 instead of 32.0 ms. The weights are the same, bit for bit, also where they round, overflow
    or underflow (NVIDIA H200, torch 2.11).

    ## Example
    ```python
    import torch
    from torchvision.models import vit_l_16

    model = vit_l_16().cuda().half()

    @torch.no_grad()
    def predict(images):
        return model(images.cuda().half()).argmax(-1).cpu()
    ```

    ## Use instead
    ```python
    import torch
    from torchvision.models import vit_l_16

    model = vit_l_16().half().cuda()

    @torch.no_grad()
    def predict(images):
        return model(images.cuda().half()).argmax(-1).cpu()
    ```

    ## Fix safety
    Safe where the two calls follow on each other and the network's class has no `to`, `cuda` or `half` of its own: the host
    rounds as the GPU does, bit for bit. Unsafe where the class is not seen, and where something stands between the two.
    Nothing is offered where the cast stands under a condition.
    """

    code = "GPU407"
    name = "cast-after-move"
    severity = Severity.WARNING
    runtime_claim = Claim("transient", device_only=True)
    triggers = ((b"half", b"float16", b"bfloat16", b"float8"), (b"cuda", b".to("), (b"torch",))
    doubts = True

    def considers(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Considered]:
        from gpulint.rules.detect.lifetimes.suspicion import considered
        from gpulint.rules.detect.placing.casts import late_casts

        yield from considered(facts.ask(late_casts))

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        from gpulint.rules.detect.lifetimes.suspicion import told
        from gpulint.rules.detect.placing.casts import late_casts

        if facts.on_gpu:
            yield from told(facts.ask(late_casts), set())
