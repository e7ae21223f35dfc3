from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Report, Rule

if TYPE_CHECKING:
    from gpulint.analysis.file.asking import FileFacts
    from gpulint.answers import Considered


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
    Unsafe: what is made between the two calls is on the rank's own card then. Offered where both stand in one block and
    the number of the card is known by then.
    """

    code = "GPU605"
    name = "late-set-device"
    severity = Severity.WARNING
    runtime_claim = Claim("context", device_only=True)
    triggers = ((b"set_device",), (b"cuda",))
    doubts = True

    def considers(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Considered]:
        from gpulint.rules.detect.lifetimes.suspicion import considered
        from gpulint.rules.detect.placing.cards import late_cards

        yield from considered(facts.ask(late_cards))

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        from gpulint.rules.detect.lifetimes.suspicion import told
        from gpulint.rules.detect.placing.cards import late_cards

        yield from told(facts.ask(late_cards), set())
