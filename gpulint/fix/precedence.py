"""When an expression needs parentheses where another one stood: Python's own parser is asked."""

from __future__ import annotations

import ast
import warnings


def reading(text: str) -> str | None:
    """What Python reads in a text, in which parentheses are no more; None where it cannot."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about `1.if` and unknown escapes, in somebody's code
            return ast.dump(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def binds_as_primary(code: str) -> bool:
    """Whether `.name`, `(…)` or `[…]` can follow the expression as it is."""
    return reading(f"({code}.x)") == reading(f"(({code}).x)")
