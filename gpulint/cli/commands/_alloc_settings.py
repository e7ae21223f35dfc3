"""Allocator settings that a command is given, to play a program's allocations under them."""

from __future__ import annotations

import click


def check_settings(option: str, text: str, hint: str = "") -> None:
    """Raises click.UsageError for settings that torch refuses, or that the allocator's model cannot play."""
    from gpulint.allocator import parse_settings
    from gpulint.memory.alloc_conf import parse
    from gpulint.rules.detect.alloc_conf import bad_options

    for problem in bad_options(text):
        meant = f" (`{problem.mended}`)" if problem.mended else ""
        more = f"; {problem.hint}" if problem.hint else ""
        raise click.UsageError(f"{option}: {problem.what}{more}{meant}{hint}.")
    try:
        parse_settings(text)
    except ValueError as error:
        raise click.UsageError(f"{option} {text}: {error}{hint}.") from error
    if parse(text).get("backend", "native") != "native":
        raise click.UsageError(
            f"{option} {text}: the model is one of torch's own allocator, and cudaMallocAsync is the driver's."
        )
