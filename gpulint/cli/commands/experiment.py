"""`gpulint experiment`: try out on this machine what is said about the allocator."""

from __future__ import annotations

import sys
from typing import Any

import click

from gpulint.cli._errors import as_error
from gpulint.cli._options import SIZE, option, print_json


@click.group()
def command() -> None:
    """Try out on this machine, or in a model of the allocator, what is said about it."""


@command.command("fragmentation", short_help="Fragment memory under several allocator settings.")
@option("--size", "Size of the tensors.", default="256MiB", show_default=True, type=SIZE)
@option.count("--count", "Number of tensors.", least=2, default=24)
@option.count("--free-every", "every", "Every Nth is freed.", least=2, default=3)
@option(
    "--ask PART",
    "Part of the freed bytes that is asked for in one piece.",
    type=click.FloatRange(min=0, max=1, min_open=True),
    default=0.85,
)
@option("--setting SETTINGS", "settings", "Allocator settings to try.", multiple=True)
@option(
    "--device WHERE",
    "auto, cuda (the GPU) or model.",
    type=click.Choice(["auto", "cuda", "model"]),
    default="auto",
    show_default=True,
)
@option("--python PATH", "interpreter", "Interpreter that has torch, for the GPU.", default=sys.executable)
@option.as_json("Outcomes as JSON.")
def fragmentation(
    settings: tuple[str, ...], device: str, interpreter: str, as_json: bool, **holes: Any
) -> int:
    """Fill memory, punch holes, ask for one large piece; and run batches of varying length: under each setting."""
    from gpulint.memory import alloc_conf
    from gpulint.operator import experiment

    chosen = tuple("" if text == "default" else text for text in settings) or experiment.SETTINGS
    with as_error(click.UsageError, ValueError):
        scenarios = experiment.standard(**holes)
        for text in chosen:
            alloc_conf.parse(text)
    gpu = device == "cuda" or (device == "auto" and experiment.gpu_works(interpreter))
    outcomes: list[Any] = experiment.run_all(scenarios, chosen, gpu, interpreter)
    if as_json:
        print_json([outcome.to_json() for outcome in outcomes])
    else:
        print("\n".join(experiment.render(scenarios, outcomes)))
    return 2 if any(outcome.error for outcome in outcomes) else 0
