"""What each rule claims about a run, in one place: which of the measurements can confirm or refute it.

A claim's kind selects the judge in `verdict`. A rule that is not in the table (a user's own, say) claims
drift.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "drift",  # memory made at or held by the line grows from step to step, on the device or on the host
    "cycle",  # as drift, or freed by gc.collect() alone, or as retained
    "forward",  # the forward at the line runs with grad and leaves saved activations
    "guard",  # the forwards that follow the line run with grad, although the line was to prevent it
    "late",  # the value is alive at the peak, after its last use
    "deferred",  # the activations of several micro-batches are alive at once
    "retained",  # the backward at the line leaves the saved tensors allocated
    "handler",  # the line runs inside an `except` block, while the failed step's tensors are alive
    "time",  # the calls cost time in the step
    "growth",  # the line allocates device memory
    "useless",  # the line frees nothing
    "setting",  # the allocator's settings, as read back from the process
    "code",  # a matter of the source, nothing to measure
]


@dataclass(frozen=True, slots=True)
class Claim:
    """`calls` are the functions timed (kind "time"), as `CallFigures.what` names them; `device_only` says
    that a machine without a GPU cannot tell; `unvisited` that no backward goes through the forward's graph."""

    kind: Kind
    calls: tuple[str, ...] = ()
    device_only: bool = False
    unvisited: bool = False


DIAGNOSTICS = "GPU0"  # codes about files and comments, which claim nothing about a run

_DRIFT = Claim("drift")

CLAIMS: Mapping[str, Claim] = {
    "GPU101": _DRIFT,
    "GPU102": _DRIFT,
    "GPU103": _DRIFT,
    "GPU104": _DRIFT,
    "GPU105": _DRIFT,
    "GPU106": _DRIFT,
    "GPU107": _DRIFT,
    "GPU201": Claim("forward", unvisited=True),
    "GPU202": Claim("forward", unvisited=True),
    "GPU203": Claim("forward"),
    "GPU204": Claim("guard"),
    "GPU301": Claim("retained"),
    "GPU302": Claim("cycle"),
    "GPU303": Claim("deferred"),
    "GPU304": Claim("useless"),
    "GPU401": Claim("late"),
    "GPU402": Claim("handler"),
    "GPU403": Claim("growth", device_only=True),
    "GPU404": Claim("growth", device_only=True),
    "GPU405": Claim("useless"),
    "GPU406": Claim("code"),
    "GPU501": Claim("time", ("torch.cuda.empty_cache",), device_only=True),
    "GPU502": Claim("time", ("gc.collect",)),
    "GPU503": Claim("time", ("torch.cuda.synchronize",), device_only=True),
    "GPU504": Claim("time", ("Tensor.item", "Tensor.tolist", "Tensor.cpu")),
    "GPU601": Claim("setting", device_only=True),
    "GPU602": Claim("setting", device_only=True),
    "GPU603": Claim("code"),
    "GPU604": Claim("setting", device_only=True),
}


def claim_of(code: str) -> Claim:
    """The claim behind a finding's code."""
    return CLAIMS.get(code, _DRIFT)
