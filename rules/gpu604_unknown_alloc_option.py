from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from gpulint.rules._settings import setting_claims

from gpulint.analysis.asked import Asked
from gpulint.analysis.models.allocator import BadOption, bad_options, option_names
from gpulint.analysis.project.requirements import version_of
from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Claimed, Option, Rule, SettingProblem


class UnknownAllocOption(Rule):
    """
    ## What it does
    Finds options in the allocator's environment variable that torch does not know, and values that it refuses. Shell
    scripts, Dockerfiles and `.env` files are read as well.

    ## Why is this bad
    torch stops with an error, when it is imported or when the first tensor goes to the GPU: `expandable_segments:true`
    with a small letter is enough. The program that sets it may find out after it has loaded its data.

    ## What it costs
    The run: of 18 settings tried, all misspelt, with torch 2.11 18 errors came of it, of which 3 aborts of the
    interpreter. No memory.

    ## Example
    ```python
    import os

    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segment:True"

    import torch
    ```

    ## Use instead
    ```python
    import os

    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"

    import torch
    ```

    ## Fix safety
    The nearest option that torch knows is a guess: unsafe.

    ## Options
    `target-torch`: the oldest version of torch that the program must run with; options that came later are reported.
    It is taken from `target-torch` of the configuration where that is set.
    """

    code = "GPU604"
    name = "unknown-alloc-option"
    severity = Severity.ERROR
    costs_when_run = False
    runtime_claim = Claim("setting", device_only=True)
    reads_settings = True
    triggers = ((b"ALLOC_CONF", b"llocator_settings", b"llocatorSettings"),)
    options = (Option("target-torch", "", (), "the oldest version of torch that must take the setting"),)

    def claims(self, asked: Asked, options: Mapping[str, Any]) -> Iterator[Claimed]:
        yield from setting_claims(self, asked, options)

    def setting_problems(self, text: str, options: Mapping[str, Any]) -> Iterator[SettingProblem]:
        for problem in bad_options(text, version_of(options.get("target-torch"))):
            yield replace(_said(problem), options=option_names(text))


def _said(problem: BadOption) -> SettingProblem:
    return SettingProblem(
        problem.what + (f"; {problem.hint}" if problem.hint else ""),
        "torch checks the whole setting and stops at what it does not know",
        "an error when torch is imported, or when the first tensor goes to the GPU (torch 2.11)",
        mended=problem.mended,
        applicability="unsafe",
        remedy="write the option that was probably meant",
    )
