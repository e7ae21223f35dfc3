"""`gpulint verify`: run some steps of a training script and judge every finding by what it measures."""

from __future__ import annotations

from typing import Any

import click

from gpulint.cli import _options as shared
from gpulint.runtime.record.options import REACH
from gpulint.testing.baselines import TOLERANCE
from gpulint.trial.plan import MAX_RUNS

_what = shared.under("What to measure")
_findings = shared.under("Findings")
_fixes = shared.under("Fixes")
_limits = shared.under("Limits, for CI")
_output = shared.under("Output")


_LAUNCH = (
    ("--nproc-per-node", "N", "Processes on this machine: a number, auto, gpu or cpu."),
    ("--nnodes", "N", "Machines, or a range such as 1:4."),
    ("--node-rank", "N", "This machine's number."),
    ("--master-addr", "HOST", "Address of machine 0."),
    ("--master-port", "PORT", "Port on machine 0."),
    ("--rdzv-backend", "NAME", "Rendezvous backend, such as c10d."),
    ("--rdzv-endpoint", "HOST:PORT", "Rendezvous endpoint."),
    ("--rdzv-id", "ID", "Rendezvous id of this job."),
)


def _torchrun(command: shared.Decorated) -> shared.Decorated:
    """A command with the options, of which `_flags` reads the values."""
    option = shared.under("Several processes (torchrun)")
    command = option("--standalone", is_flag=True, help="One machine, on a free port.")(command)
    for name, metavar, text in reversed(_LAUNCH):
        command = option(name, metavar=metavar, help=text)(command)
    return command


def _flags(given: dict[str, Any]) -> tuple[str, ...]:
    """torchrun's flags, taken out of what a command was given; none where torchrun is not wanted. One machine needs no fixed
    port."""
    values = {name: given.pop(name[2:].replace("-", "_")) for name, _, _ in _LAUNCH}
    found = [part for name, value in values.items() if value is not None for part in (name, value)]
    several = values["--nnodes"] not in (None, "1") or values["--master-addr"] or values["--rdzv-endpoint"]
    if given.pop("standalone") or (found and not several and not values["--rdzv-backend"]):
        found.insert(0, "--standalone")
    return tuple(found)


@click.command(
    cls=shared.GroupedCommand,
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
)
@shared.script()
@shared.module("What to measure")
@_what("--steps", type=click.IntRange(min=1), default=20, help="Steps to sample after warm-up.")
@_what(
    "--warmup",
    type=click.IntRange(min=0),
    help="Steps before sampling; by default at least 3, until optimizer state is constant.",
)
@_what(
    "--step",
    metavar="FUNCTION",
    help="A call of this function is a step: `train_batch`, `Server.answer`. By default an optimizer's step is one.",
)
@_what(
    "--unit",
    metavar="FUNCTION",
    multiple=True,
    help="What outlives a call of this function is growth as well: a trial, a request, an epoch. May be given again.",
)
@_what(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    help="End the script at the latest after this time.",
)
@_what(
    "--reach",
    type=click.FloatRange(min=0),
    default=REACH,
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
@shared.python("What to measure")
@_findings(
    "--findings",
    type=shared.FILE,
    help="Judge these, the JSON of gpulint --output-format json (- reads standard input).",
)
@shared.rules("Findings")("--select", help="Only these rules: codes or prefixes.")
@shared.rules("Findings")("--ignore", help="Not these rules.")
@_findings(
    "--confidence",
    metavar="LEVEL",
    type=shared.CONFIDENCE,
    help="low: findings with doubts as well, also where the run does not confirm them.",
)
@_fixes(
    "--fix",
    is_flag=True,
    help="Run SCRIPT without and with the fixes of all findings, and write those that pay and change no result.",
)
@_fixes("--dry-run", is_flag=True, help="With --fix: show the diff and the figures, write nothing.")
@_fixes(
    "--max-runs",
    type=click.IntRange(min=3),
    default=MAX_RUNS,
    help="With --fix: run SCRIPT so many times at most.",
)
@_limits(
    "--max-drift",
    default="0B",
    show_default=True,
    type=shared.SIZE,
    help="Bytes a step that may stay on the GPU (512B, 1.5MiB).",
)
@_limits(
    "--max-peak",
    type=shared.SIZE,
    help="Bytes that may be allocated at the highest point of the run (8GiB). Without a GPU an error, or say --device cpu.",
)
@_limits(
    "--baseline",
    type=shared.FILE,
    default="",
    help="Committed peaks: SCRIPT's entry for this card and torch may be exceeded by --tolerance. No entry is an error.",
)
@_limits(
    "--write-baseline",
    "write",
    is_flag=True,
    help="Write the peaks of this run into the file of --baseline; its other entries stay.",
)
@_limits(
    "--tolerance",
    metavar="PERCENT",
    type=click.FloatRange(min=0),
    default=TOLERANCE,
    help="How much more than the baseline is no failure.",
)
@_limits(
    "--untouched",
    type=shared.SIZE,
    help="Bytes that may be alive on the GPU although no forward, backward or optimizer of the watched steps touches them.",
)
@_limits(
    "--max-host-drift",
    "host_drift",
    type=shared.SIZE,
    help="Bytes a step that host memory may grow, in no tensor or in workers; without it that is told and fails nothing.",
)
@_limits(
    "--exclusive",
    is_flag=True,
    help="Do not run where another process uses a card that SCRIPT can see (CUDA_VISIBLE_DEVICES).",
)
@shared.output_format(
    "text",
    "json",
    "markdown",
    help="text, json, or markdown for a pull request: of limits, or of what --fix has tried.",
    heading="Output",
)
@shared.report("Output")
@_output(
    "--snapshot",
    type=shared.WRITTEN,
    help="Record allocations on the GPU, and write torch's memory snapshot to FILE at the end (of each rank: FILE-rank0).",
)
@_output("-s", "--show-output", is_flag=True, help="Let the script's own output through.")
@shared.colour("Output")
@shared.quiet("Output")
@_torchrun
def command(**given: Any) -> int:
    """Run some steps of SCRIPT, measure its memory, and judge every finding.

    SCRIPT runs unchanged, with its arguments, in a process of its own, until enough steps are sampled.

    Exit status: 0 no drift above --max-drift and no other limit exceeded, 1 a limit exceeded, 2 wrong use, SCRIPT failed, or
    nothing to compare with. With --fix: 0 nothing left to
    gain, 1 gains found and not applied, 2 SCRIPT could not be run.
    """
    from gpulint.cli import _verify

    return _verify.perform(_verify.request_of(_flags(given), given))
