"""What a GPU's kernels and libraries take and a fake run does not.

`HOOKS` maps an operator to a function that runs it instead (`tape.execute(op, args, kwargs)`) and may say
`tape.temporary(nbytes)` before or after, or `tape.permanent(nbytes, what)` once. `functions()` maps functions of torch to
what is called in their place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

HOOKS: dict[Any, Callable[[Any, Any, tuple[Any, ...], dict[str, Any]], Any]] = {}


def functions() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Replacements of torch's functions; none."""
    return {}
