"""torch's layers that normalize by running statistics: they stand behind layers with weights, and what they are given has a
graph where the network trains."""

from __future__ import annotations

from typing import Final

_KINDS = (
    "BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d".split()
)
_INNER = "_BatchNorm _NormBase _InstanceNorm".split()

NORMALIZES: Final = frozenset(
    [f"torch.nn.{name}" for name in _KINDS]
    + [f"torch.nn.modules.batchnorm.{name}" for name in (*_KINDS, *_INNER)]
    + [f"torch.nn.modules.instancenorm.{name}" for name in (*_KINDS, *_INNER)]
)
# The buffers in which they keep those statistics.
STATISTICS: Final = frozenset({"running_mean", "running_var"})
