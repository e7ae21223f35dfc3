from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gpulint.rules._kept import considered_kept, report_kept
from gpulint.rules.detect.caches import Cache

from gpulint.claims import Claim
from gpulint.findings import Severity
from gpulint.rule import Cost, Repair, Replace, Report, Rule

if TYPE_CHECKING:
    from gpulint.analysis.file.asking import FileFacts
    from gpulint.answers import Considered

_GRAPH_COST = Cost(
    "every activation behind it, for each new key", "34 MiB for an 8-layer MLP; H200, torch 2.11"
)
_BYTES_COST = Cost(
    "its own bytes on the device, for each new key", "2 MiB for 512 × 1,024 floats; H200, torch 2.11"
)


class CachedTensor(Rule):
    """
    ## What it does
    Finds caches without a bound that keep a network's outputs on the device: `@cache` and `@lru_cache(maxsize=None)` on
    a function that returns them, a dict of the module or of a class that is filled with them key by key, and a dict of
    an object that is filled with outputs and their autograd graphs.

    With doubts, each in words, it also tells of an object's dict that is filled under keys which may never repeat.
    With a doubt it also tells of `lru_cache` on a method of a network or of an object that holds one, and on a function that
    is given a network, which the cache keeps alive; and of parts of an output kept under their own keys: each is a view of the whole.

    ## Why is this bad
    The cache lives as long as the process and grows with every new key. An output with its autograd graph keeps every
    activation behind it as well: that is an *error*, and the second backward through it fails.

    ## What it costs
    Per new key, an 8-layer MLP, batch 512 × 1,024 (NVIDIA H200, torch 2.11):

    | cached | GPU | host |
    |---|---|---|
    | `net(x)` with grad enabled | 34.0 MiB | 42.7 KiB |
    | `net(x).cpu()` with grad enabled | 32.0 MiB | 2,090.5 KiB |
    | `net(x)` under `no_grad` | 2.0 MiB | 1.3 KiB |
    | `net(x).cpu()` under `no_grad` | 0 B | 2,048.8 KiB |

    Masks for a new length in every step, kept by an unbounded `lru_cache`: 291 KiB a step.

    One object after another with an 8-layer MLP, of which a memoised method is asked once: 32 MiB more for each with
    `lru_cache`, those of the last four with `lru_cache(maxsize=4)`, none with `cached_property`.

    ## Example
    ```python
    import torch
    from torchvision.models import resnet18

    net = resnet18().eval()
    FEATURES = {}

    @torch.no_grad()
    def features(name, image):
        if name not in FEATURES:
            FEATURES[name] = net(image)
        return FEATURES[name]
    ```

    ## Use instead
    ```python
    import torch
    from torchvision.models import resnet18

    net = resnet18().eval()
    FEATURES = {}

    @torch.no_grad()
    def features(name, image):
        if name not in FEATURES:
            FEATURES[name] = net(image).cpu()
        return FEATURES[name]
    ```

    Or bound the cache: `@lru_cache(maxsize=64)`.

    ## Fix safety
    Moving what a dict keeps to the host, detached where it has a graph, is unsafe: what is taken out of it is then on
    another device. Where that is computed with, it is only detached. Nothing is offered for decorators: what a good bound is, the code does not tell.
    """

    code = "GPU106"
    name = "cached-tensor"
    severity = Severity.WARNING
    runtime_claim = Claim("drift")
    doubts = True
    triggers = (
        (b"torch", b"lru_cache", b"functools.cache", b"cachetools"),
        (b" in ", b".get(", b"lru_cache", b"@cache", b"functools.cache", b"cached("),
    )

    def considers(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Considered]:
        from gpulint.rules.detect.lifetimes.batch_views import kept_slices
        from gpulint.rules.detect.lifetimes.method_caches import method_caches
        from gpulint.rules.detect.lifetimes.suspicion import considered

        yield from considered((*facts.ask(method_caches), *facts.ask(kept_slices)))
        yield from considered_kept(facts, self.code)

    def check(self, facts: FileFacts, options: Mapping[str, Any]) -> Iterator[Report]:
        from gpulint.rules.detect.caches import caches
        from gpulint.rules.detect.lifetimes.batch_views import kept_slices
        from gpulint.rules.detect.lifetimes.method_caches import method_caches
        from gpulint.rules.detect.lifetimes.suspicion import told

        rows: set[int] = set()
        for cache in facts.ask(caches):
            rows.add(cache.node.row)
            yield _report(facts, cache)
        yield from told((*facts.ask(method_caches), *facts.ask(kept_slices)), rows)
        yield from report_kept(facts, self.code)


def _report(facts: FileFacts, cache: Cache) -> Report:
    how = "together with its autograd graph" if cache.graph else "on the device"
    if cache.what == "function":
        message = f"the cache of `{cache.name}` keeps a network's output for every new argument, {how}"
    else:
        message = f"`{cache.name}` keeps a network's output for every new key, {how}"
    return Report(
        cache.node,
        message,
        "it has no bound, nothing empties it, and it lives as long as the process",
        _GRAPH_COST if cache.graph else _BYTES_COST,
        Severity.ERROR if cache.graph else Severity.WARNING,
        lambda: _repair(facts, cache),
        (),
        cache.unless,
        subject=cache.name,
    )


def _repair(facts: FileFacts, cache: Cache) -> Repair | None:
    from gpulint.analysis.questions.device.waiting import nobody_computes_with
    from gpulint.fix.nodes import method_chain

    if cache.value is None:
        return None
    node = cache.value.node
    if nobody_computes_with(facts.analysis, cache.name):
        methods = ("detach", "cpu") if cache.graph else ("cpu",)
        why = f"what is taken out of `{cache.name}` is then on the CPU"
        return Repair("unsafe", "keep it on the host", (Replace(node, method_chain(node, methods)),), why)
    if not cache.graph:
        return None
    why = f"what is taken out of `{cache.name}` has no graph then, and somebody may train on it"
    cut = Replace(node, method_chain(node, ("detach",)))
    return Repair("unsafe", "keep it without its graph: `.detach()`", (cut,), why)
