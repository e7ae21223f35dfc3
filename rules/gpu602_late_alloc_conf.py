from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from gpulint.analysis.asked import Asked
from gpulint.analysis.models.allocator import option_names
from gpulint.analysis.queries.reached import reached
from gpulint.analysis.queries.settings import VISIBLE, Setting, settings, started_before
from gpulint.answers import Answer, Question, proven, refuted, until_refuted
from gpulint.claims import Claim
from gpulint.rule import Claimed, Cost, RelatedNode, Report, Rule


class LateAllocConf(Rule):
    """
    ## What it does
    Finds environment variables of the allocator, and `CUDA_VISIBLE_DEVICES`, that a program sets for itself after
    it has started CUDA; and `backend:cudaMallocAsync` set after `import torch`. What is meant for processes that the program
    starts is better given to them, by `env=`.

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
    runtime_claim = Claim("setting", device_only=True)
    triggers = ((b"ALLOC_CONF", b"CUDA_VISIBLE_DEVICES"), (b"environ", b"putenv"), (b"cuda",))

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        for setting in settings(asked.evaluator, asked.file):
            if setting.own:
                since = started_before(asked.evaluator, setting.statement, setting.frame, setting.read_by)
                answers = until_refuted(_answers(asked, setting, since))
                report = partial(_report, asked, setting, since)
                yield Claimed(setting.statement, setting.variable, answers, report)


def _answers(asked: Asked, setting: Setting, since: ast.Call | None) -> Iterator[Answer]:
    backend = setting.variable != VISIBLE and "backend:cudaMallocAsync" in setting.text
    if since is not None:
        yield proven(Question.READS, "the variable has been read", since, asked.path_of(since))
    elif backend and _imports_torch(setting):
        yield proven(Question.READS, "the backend has been read")
    else:
        yield refuted(Question.READS, "nothing is seen to have read the variable by then")
    yield from reached(asked.evaluator, setting.frame.function)


def _imports_torch(setting: Setting) -> bool:
    function = setting.frame.function
    imports = function.file.body.flow.definitions_of("import")
    by_then = (one for one in imports if not function.is_module or one.node.lineno < setting.statement.lineno)
    return any(one.value.partition(".")[0] == "torch" for one in by_then)


def _report(asked: Asked, setting: Setting, since: ast.Call | None) -> Report:
    name = setting.variable
    claim = replace(LateAllocConf.runtime_claim, options=option_names(setting.text))
    if since is None:
        return Report(
            setting.statement,
            f"the backend in `{name}` is read when torch is imported, which has happened by now",
            "torch compares it with the one in use when CUDA starts, and stops",
            "an internal assertion when the first tensor goes to the GPU (torch 2.11)",
            claim=claim,
        )
    saved = "22.4 GiB reserved where `expandable_segments:True` takes 6.4 GiB; H200, torch 2.11"
    sees = name == VISIBLE
    path = asked.path_of(since)
    return Report(
        setting.statement,
        f"`{name}` has no effect any more: `{ast.unparse(since)}` has started CUDA",
        f"{'the driver' if sees else 'torch'} reads the variable once, at the start",
        Cost("all devices stay visible") if sees else Cost("all that the setting was to save", saved),
        claim=claim,
        related=(RelatedNode("CUDA is started here", None if path else since, path or None, since.lineno),),
    )
