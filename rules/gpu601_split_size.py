from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpulint.rules._settings import setting_claims

from gpulint.analysis.asked import Asked
from gpulint.analysis.models.allocator import option_names, split_size
from gpulint.analysis.project.requirements import newest_torch
from gpulint.claims import Claim
from gpulint.rule import Claimed, Cost, Rule, SettingProblem

_EXPANDABLE_SINCE = (2, 1)


class SplitSizeLimit(Rule):
    """
    ## What it does
    Finds `max_split_size_mb` below 1024 in the allocator's environment variable, alone or beside
    `expandable_segments:True`. Shell scripts, Dockerfiles and `.env` files are read as well.

    ## Why is this bad
    torch keeps freed memory in blocks, and splits one to serve a smaller request. `max_split_size_mb` forbids that for
    larger blocks: a request for half of such a block leaves it idle, and takes new memory from the GPU. Where sizes
    vary, as with batches of varying length, that goes on until the card is full. `expandable_segments:True` does what
    people want from it, less fragmentation.

    ## What it costs
    Batches of 32 to 512 tokens, 5.3 GiB allocated at most (4-layer language model, NVIDIA H200, torch 2.11):

    | setting | reserved |
    |---|---|
    | none | 22.4 GiB |
    | none, the longest batch first | 6.0 GiB |
    | `expandable_segments:True` | 6.4 GiB |
    | `max_split_size_mb:128` | 106 GiB |
    | `max_split_size_mb:512` | 84.6 GiB |
    | `max_split_size_mb:1024` | 22.4 GiB |
    | both | 137 GiB, all that the card had |

    Under a memory limit of 8 GiB both together took 25 retries, `expandable_segments:True` alone 0 retries, no setting
    4 retries, `garbage_collection_threshold:0.8` 0 retries.

    ## Example
    ```python
    import os

    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:128"

    import torch
    ```

    ## Use instead
    ```python
    import os

    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"

    import torch
    ```

    ## Fix safety
    Results stay the same. Taking `max_split_size_mb` out beside `expandable_segments:True` is safe; putting
    `expandable_segments:True` in its place is unsafe: it needs torch 2.1 and Linux. Where the project asks for an older torch,
    nothing is offered.
    """

    code = "GPU601"
    name = "split-size"
    costs_when_run = False
    runtime_claim = Claim("setting", device_only=True, fragments=True)
    reads_settings = True
    triggers = ((b"max_split_size_mb",), (b"ALLOC_CONF", b"llocator"))

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        newest = newest_torch(asked.program, asked.file)
        mends = newest is None or newest >= _EXPANDABLE_SINCE
        yield from setting_claims(self, asked, options, mends)

    def setting_problems(self, text: str, options: Mapping[str, Any]) -> Iterator[SettingProblem]:
        found = split_size(text)
        if found is not None:
            yield SettingProblem(
                found.message,
                "expandable segments need their blocks split to be used again"
                if found.expandable
                else "free memory in larger blocks fits no smaller tensor, so each new batch size takes more from the GPU",
                Cost(
                    "free memory that the cache holds and no tensor fits, the more of it the more sizes there are",
                    found.measured,
                ),
                mended=found.mended,
                applicability="safe" if found.expandable else "unsafe",
                remedy=found.remedy,
                options=option_names(text),
            )
