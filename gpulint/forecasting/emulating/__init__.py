"""What a GPU's kernels and libraries take and a fake run does not.

`HOOKS` maps an operator to a function that runs it instead (`tape.execute(op, args, kwargs)`) and may say
`tape.temporary(nbytes)` before or after, or `tape.permanent(nbytes, what)` once. `patches()` names functions of torch and what
is put in their place before the program runs; a function mode will not do, for it is off while an overridable function of torch
runs, a whole backward among them.

The formulas were fitted to allocations recorded on an H200 with torch 2.11 (`benchmarks/forecast_operators.py`); where ATen's own
source gives the size, it is that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from gpulint.forecasting.emulating import attention, indexing, kernels, recurrent, reducing
from gpulint.forecasting.emulating._tensors import Hook

_KINDS = (attention, indexing, kernels, recurrent, reducing)
HOOKS: Final[dict[Any, Hook]] = {func: hook for kind in _KINDS for func, hook in kind.HOOKS.items()}


def patches(tape: Any) -> list[tuple[Any, str, Callable[..., Any]]]:
    """What to replace before the program runs: where, which name, by what."""
    return [*attention.patches(), *recurrent.patches(tape), *kernels.patches(tape)]
