from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gpulint.rules.detect.memory_api import OldCall

from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Option, Repair, Replace, Report, Rule

if TYPE_CHECKING:
    import libcst as cst

    from gpulint.analysis.file.asking import FileFacts


# A torch older than this is not asked about.
_EVERYWHERE = (1, 10)


class DeprecatedMemoryApi(Rule):
    """
    ## What it does
    Finds deprecated names of torch's memory and mixed-precision interface: `memory_cached`, `max_memory_cached`,
    `reset_max_memory_allocated`, `reset_max_memory_cached`, `torch.cuda.amp.autocast`, `torch.cuda.amp.GradScaler`,
    `custom_fwd`, `custom_bwd`.

    ## Why is this bad
    Each call warns, and the names will go. "Cached" memory is what is called *reserved* since torch 1.4. The two
    `reset_max_…` reset all peaks, not one.

    ## What it costs
    No memory: a FutureWarning at every call. 9 names were called, 9 warnings seen (torch 2.11).

    ## Example
    ```python
    import torch

    scaler = torch.cuda.amp.GradScaler()
    print(torch.cuda.memory_cached())
    ```

    ## Use instead
    ```python
    import torch

    scaler = torch.amp.GradScaler("cuda")
    print(torch.cuda.memory_reserved())
    ```

    ## Fix safety
    The newer name does the same: safe. `torch.amp.autocast` needs torch 1.13, `torch.amp.GradScaler` torch 2.3,
    `torch.amp.custom_fwd` and `custom_bwd` torch 2.4: where nothing says which versions the program runs with, the change
    to these is unsafe. So it is where the program asks for the old type, `isinstance(x, torch.cuda.amp.GradScaler)`, which
    the newer name makes no instance of, and where it sets autocast's dtype or cache for the whole process.

    ## Options
    `target-torch`: the oldest version of torch that the program must run with; names that are newer are not asked for.
    It is taken from `target-torch` of the configuration where that is set, else from what the project requires:
    `"torch>=2.2"` in its `pyproject.toml`, `setup.cfg`, `setup.py` or `requirements.txt`. A project that
    requires an older torch than the one that deprecates a name, `"torch==2.0.1"`, hears nothing about it.
    """

    code = "GPU603"
    name = "deprecated-memory-api"
    severity = Severity.INFO
    costs_when_run = False
    runtime_claim = Claim("code")
    in_tests = True
    triggers = (
        (b"torch",),
        (b"memory_cached", b"reset_max_memory", b"cuda.amp", b"cpu.amp", b"import amp"),
    )
    options = (Option("target-torch", "", (), "the oldest version of torch that the program must run with"),)

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        from gpulint.rules.detect.memory_api import old_calls

        from gpulint.analysis.project.requirements import newest_torch, oldest_torch, version_of

        calls = facts.ask(old_calls)
        if not calls:
            return
        around = (facts.analysis.project, facts.analysis.filename)
        chosen = version_of(options.get("target-torch"))
        target = chosen or oldest_torch(*around)
        newest = None if chosen else newest_torch(*around)
        for old in calls:
            needed = version_of(old.renamed.known_since)
            since = version_of(old.renamed.since)
            if newest is not None and since is not None and newest < since:
                continue  # the name is not deprecated yet
            if target is None or needed is None or target >= needed:
                known = target is not None or needed is None or needed < _EVERYWHERE
                yield _report(facts, old, _why_unsafe(facts, old, known))


def _why_unsafe(facts: FileFacts, old: OldCall, known: bool) -> str:
    """In a clause, what the newer name may do otherwise in this file."""
    from gpulint.rules.detect.memory_api import asks_for_type, sets_autocast

    if not known:
        return f"`{old.renamed.new}` needs torch {old.renamed.known_since}, and nothing says which one the program runs with"
    if asks_for_type(facts.analysis, old.name):
        return f"the program asks whether something is a `{old.name}`, which the newer one makes no more"
    if old.name.endswith("autocast") and facts.ask(sets_autocast):
        return "the newer one takes over the dtype and the cache that the program has set for autocast"
    return ""


def _report(facts: FileFacts, old: OldCall, why_unsafe: str) -> Report:
    told = "device_type=" if old.renamed.decorator else ""
    new = old.renamed.new + (f'({told}"{old.renamed.device}", …)' if old.renamed.device else "")
    return Report(
        old.call or old.func,
        f"`{old.name}` is deprecated: since torch {old.renamed.since} it is `{new}`",
        "the old name warns at every call",
        "no memory; a FutureWarning",
        repair=lambda: _repair(facts, old, why_unsafe),
        subject=old.name,
    )


def _repair(facts: FileFacts, old: OldCall, why_unsafe: str) -> Repair | None:
    from gpulint.fix.nodes import expression

    name = facts.torch_name(old.renamed.new.removeprefix("torch."))
    call = None if old.call is None else _new_call(facts, old)
    if name is None or call is None:
        return None
    new = call.with_changes(func=expression(name))
    return Repair.unless(why_unsafe, f"use `{old.renamed.new}`", (Replace(call_node(old), new),))


def call_node(old: OldCall) -> cst.CSTNode:
    assert old.call is not None
    node: cst.CSTNode = old.call.node
    return node


def _new_call(facts: FileFacts, old: OldCall) -> cst.Call | None:
    """The old call with the arguments of the newer name; None where they cannot be told."""
    import libcst as cst

    node = call_node(old)
    assert isinstance(node, cst.Call)
    renamed = old.renamed
    if renamed.device is None:
        return node
    if renamed.decorator:
        return None
    args = list(node.args)
    if any(arg.star for arg in args):
        return None
    if renamed.order is not None:
        for position, arg in enumerate(args):
            if arg.keyword is None:
                keyword = cst.Name(renamed.order[position])
                equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
                args[position] = arg.with_changes(keyword=keyword, equal=equal)
    device = cst.Arg(cst.SimpleString(facts.quoted(renamed.device)))
    if args:
        device = device.with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
    return node.with_changes(args=[device, *args])
