"""`gpulint verify`: run some steps of a training script and judge every finding by what it measures."""

from __future__ import annotations

from typing import Any

import click

from gpulint.cli._grouped import GroupedCommand, codes, heading
from gpulint.runtime.record.result import REACH

_what = heading("What to measure")
_findings = heading("Findings")
_output = heading("Output")
_launch = heading("Several processes (torchrun)")
_CODES = "CODES"


def _size(_: click.Context, __: click.Parameter, value: str) -> int:
    from gpulint.units import parse_bytes

    try:
        return parse_bytes(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command(
    cls=GroupedCommand,
    short_help="Run some steps of a script and judge every finding.",
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
)
@click.argument("target", metavar="SCRIPT")
@click.argument("arguments", metavar="[ARGS]...", nargs=-1, type=click.UNPROCESSED)
@_what("-m", "module", is_flag=True, help="SCRIPT is a module's name, as for python -m.")
@_what(
    "--steps",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="Steps to sample after warm-up.",
)
@_what(
    "--warmup",
    type=click.IntRange(min=0),
    metavar="N",
    help="Steps before sampling; by default at least 3, until optimizer state is constant.",
)
@_what(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="End the script at the latest after this time.",
)
@_what(
    "--reach",
    type=click.FloatRange(min=0),
    default=REACH,
    show_default=True,
    metavar="SECONDS",
    help="Go on so long after the last step for findings not reached yet.",
)
@_what(
    "--cut-epochs",
    is_flag=True,
    help="Let epochs that have trained end early, to reach those findings sooner; changes what the script prints then.",
)
@_what(
    "--device",
    metavar="WHERE",
    type=click.Choice(["auto", "cuda", "cpu"]),
    default="auto",
    help="Which memory to watch: auto (CUDA where there is one), cuda, cpu.",
)
@_what("--python", metavar="PATH", help="The interpreter that runs SCRIPT; by default gpulint's own.")
@_findings(
    "--findings",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Judge these, the JSON of gpulint --output-format json (- reads standard input).",
)
@_findings(
    "--select", metavar=_CODES, multiple=True, callback=codes, help="Only these rules: codes or prefixes."
)
@_findings("--ignore", metavar=_CODES, multiple=True, callback=codes, help="Not these rules.")
@_findings(
    "--confidence",
    metavar="LEVEL",
    type=click.Choice(["high", "medium", "low"]),
    help="medium or low: findings from there on, also where the run does not confirm them.",
)
@_output(
    "--output-format",
    metavar="FORMAT",
    type=click.Choice(["text", "json"]),
    default="text",
    help="text or json.",
)
@_output("--report", metavar="FILE", type=click.Path(dir_okay=False), help="Write an HTML report to FILE.")
@_output(
    "--max-drift",
    metavar="SIZE",
    default="0B",
    show_default=True,
    callback=_size,
    help="Bytes a step that may stay on the GPU (512B, 1.5MiB).",
)
@_output("-s", "--show-output", is_flag=True, help="Let the script's own output through.")
@_output(
    "--color",
    "colour",
    metavar="WHEN",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="auto, always or never; NO_COLOR holds.",
)
@_output("-q", "--quiet", is_flag=True, help="No progress.")
@_launch("--nproc-per-node", metavar="N", help="Processes on this machine: a number, auto, gpu or cpu.")
@_launch("--nnodes", metavar="N", help="Machines, or a range such as 1:4.")
@_launch("--node-rank", metavar="N", help="This machine's number.")
@_launch("--master-addr", metavar="HOST", help="Address of machine 0.")
@_launch("--master-port", metavar="PORT", help="Port on machine 0.")
@_launch("--rdzv-backend", metavar="NAME", help="Rendezvous backend, such as c10d.")
@_launch("--rdzv-endpoint", metavar="HOST:PORT", help="Rendezvous endpoint.")
@_launch("--rdzv-id", metavar="ID", help="Rendezvous id of this job.")
@_launch("--standalone", is_flag=True, help="One machine, on a free port.")
def command(**given: Any) -> int:
    """Run some steps of SCRIPT, measure its memory, and judge every finding.

    SCRIPT runs unchanged, with its arguments, in a process of its own, until enough steps are sampled.

    Exit status: 0 no drift above --max-drift, 1 drift, 2 wrong use or SCRIPT failed.
    """
    from gpulint.cli._verify import Request, perform

    return perform(Request(**given))
