"""What a finding claims about a run, as data: which of the measurements can confirm or refute it.

A rule states its claim once, as `runtime_claim`; each finding carries it to the verifier, which knows no rules. Standard
library only, because both sides import it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

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
    "transient",  # the line needs more memory for a moment than it leaves
    "alias",  # the line allocates nothing, although a copy was meant
    "useless",  # the line frees nothing
    "gathered",  # an evaluation keeps what its network gives on the device, batch after batch
    "transfer",  # the line copies to the device in every step, and the host waits for it
    "garbage",  # tensors wait in reference cycles, more with every step
    "context",  # a process has a context on a card that is not its own
    "setting",  # the allocator's settings, as read back from the process
    "code",  # a matter of the source, nothing to measure
]
KINDS: frozenset[str] = frozenset(get_args(Kind))


@dataclass(frozen=True, slots=True)
class Claim:
    """The kind selects the judge. `calls` are the functions timed (kind "time"), as `CallFigures.what` names them;
    `device_only` says that a machine without a GPU cannot tell; `unvisited` that no backward goes through the forward's
    graph; `options` are the allocator's options that the line sets, and `fragments` says that they waste what is reserved
    (kind "setting")."""

    kind: Kind
    calls: tuple[str, ...] = ()
    device_only: bool = False
    unvisited: bool = False
    options: tuple[str, ...] = ()
    fragments: bool = False

    def to_json(self) -> dict[str, Any]:
        """The kind, and whatever else is set."""
        given: dict[str, Any] = {"kind": self.kind}
        for field in fields(self)[1:]:
            value = getattr(self, field.name)
            if value:
                given[field.name] = list(value) if isinstance(value, tuple) else value
        return given

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Claim:
        """The inverse of `to_json`. Raises KeyError, TypeError or ValueError on anything else."""
        if data["kind"] not in KINDS:
            raise ValueError(f"there is no claim of the kind {data['kind']!r}")
        # Tuples of words, and switches: what each is by default says which
        defaults: dict[str, Any] = {one.name: one.default for one in fields(cls)[1:]}
        given = {name: type(other)(data.get(name, other)) for name, other in defaults.items()}
        return cls(data["kind"], **given)


DRIFT = Claim("drift")  # what a rule claims that says nothing else
