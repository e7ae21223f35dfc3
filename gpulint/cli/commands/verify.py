"""`gpulint verify`: run some steps of a training script and judge every finding by what it measures."""

from __future__ import annotations

from typing import Any

import click

from gpulint.cli._options import CONFIDENCE, FILE, SIZE, WRITTEN, Command, GroupedCommand, Heading, script
from gpulint.runtime.record.options import REACH
from gpulint.testing.baselines import TOLERANCE
from gpulint.trial.plan import MAX_RUNS

_what = Heading("What to measure")
_findings = Heading("Findings")
_fixes = Heading("Fixes")
_limits = Heading("Limits, for CI")
_output = Heading("Output")
_processes = Heading("Several processes (torchrun)")

_LAUNCH = {
    "--nproc-per-node N": "Processes on this machine: a number, auto, gpu or cpu.",
    "--nnodes N": "Machines, or a range such as 1:4.",
    "--node-rank N": "This machine's number.",
    "--master-addr HOST": "Address of machine 0.",
    "--master-port PORT": "Port on machine 0.",
    "--rdzv-backend NAME": "Rendezvous backend, such as c10d.",
    "--rdzv-endpoint HOST:PORT": "Rendezvous endpoint.",
    "--rdzv-id ID": "Rendezvous id of this job.",
}


def _torchrun(command: Command) -> Any:
    """A command with the options, of which `_flags` reads the values."""
    command = _processes.flag("--standalone", "One machine, on a free port.")(command)
    for name, said in reversed(_LAUNCH.items()):
        command = _processes(name, said)(command)
    return command


def _flags(given: dict[str, Any]) -> tuple[str, ...]:
    """torchrun's flags, taken out of what a command was given; none where torchrun is not wanted. One machine needs no fixed
    port."""
    names = [name.partition(" ")[0] for name in _LAUNCH]
    values = {name: given.pop(name[2:].replace("-", "_")) for name in names}
    found = [part for name, value in values.items() if value is not None for part in (name, value)]
    several = values["--nnodes"] not in (None, "1") or values["--master-addr"] or values["--rdzv-endpoint"]
    if given.pop("standalone") or (found and not several and not values["--rdzv-backend"]):
        found.insert(0, "--standalone")
    return tuple(found)


@click.command(
    cls=GroupedCommand, context_settings={"allow_interspersed_args": False}, options_metavar="[OPTIONS]"
)
@script()
@_what.module
@_what.count("--steps", "Steps to sample after warm-up.", default=20)
@_what.count(
    "--warmup", "Steps before sampling; by default at least 3, until optimizer state is constant.", least=0
)
@_what(
    "--step FUNCTION",
    "A call of this function is a step: `train_batch`, `Server.answer`. By default an optimizer's step is one.",
)
@_what(
    "--unit FUNCTION",
    "What outlives a call of this function is growth as well: a trial, a request, an epoch. May be given again.",
    multiple=True,
)
@_what.amount("--timeout", "End the script at the latest after this time.", above=True)
@_what.amount("--reach", "Go on so long after the last step for findings not reached yet.", default=REACH)
@_what.flag(
    "--cut-epochs",
    "Let epochs that have trained end early, to reach those findings sooner; changes what the script prints then.",
)
@_what(
    "--device WHERE",
    "Which memory to watch: auto (CUDA where there is one), cuda, cpu.",
    type=click.Choice(["auto", "cuda", "cpu"]),
    default="auto",
)
@_what.python
@_findings(
    "--findings", "Judge these, the JSON of gpulint --output-format json (- reads standard input).", type=FILE
)
@_findings.rules("--select", "Only these rules: codes or prefixes.")
@_findings.rules("--ignore", "Not these rules.")
@_findings(
    "--confidence LEVEL",
    "low: findings with doubts as well, also where the run does not confirm them.",
    type=CONFIDENCE,
)
@_fixes.flag(
    "--fix",
    "Run SCRIPT without and with the fixes of all findings, and write those that pay and change no result.",
)
@_fixes.flag("--dry-run", "With --fix: show the diff and the figures, write nothing.")
@_fixes.count("--max-runs", "With --fix: run SCRIPT so many times at most.", least=3, default=MAX_RUNS)
@_limits(
    "--max-drift",
    "Bytes a step that may stay on the GPU (512B, 1.5MiB).",
    default="0B",
    show_default=True,
    type=SIZE,
)
@_limits(
    "--max-peak",
    "Bytes that may be allocated at the highest point of the run (8GiB). Without a GPU an error, or say --device cpu.",
    type=SIZE,
)
@_limits(
    "--baseline",
    "Committed peaks: SCRIPT's entry for this card and torch may be exceeded by --tolerance. No entry is an error.",
    type=FILE,
    default="",
)
@_limits.flag(
    "--write-baseline",
    "write",
    "Write the peaks of this run into the file of --baseline; its other entries stay.",
)
@_limits.amount("--tolerance PERCENT", "How much more than the baseline is no failure.", default=TOLERANCE)
@_limits(
    "--untouched",
    "Bytes that may be alive on the GPU although no forward, backward or optimizer of the watched steps touches them.",
    type=SIZE,
)
@_limits(
    "--max-host-drift",
    "host_drift",
    "Bytes a step that host memory may grow, in no tensor or in workers; without it that is told and fails nothing.",
    type=SIZE,
)
@_limits.flag(
    "--exclusive", "Do not run where another process uses a card that SCRIPT can see (CUDA_VISIBLE_DEVICES)."
)
@_output.output_format(
    *("text", "json", "markdown"),
    said="text, json, or markdown for a pull request: of limits, or of what --fix has tried.",
)
@_output.report
@_output(
    "--snapshot",
    "Record allocations on the GPU, and write torch's memory snapshot to FILE at the end (of each rank: FILE-rank0).",
    type=WRITTEN,
)
@_output.flag("-s", "--show-output", "Let the script's own output through.")
@_output.colour
@_output.quiet
@_torchrun
def command(**given: Any) -> int:
    """Run some steps of SCRIPT, measure its memory, and judge every finding.

    SCRIPT runs unchanged, with its arguments, in a process of its own, until enough steps are sampled.

    Exit status: 0 no drift above --max-drift and no other limit exceeded, 1 a limit exceeded, 2 wrong use, SCRIPT failed, or
    nothing to compare with, 3 growth that is not settled. With --fix: 0 nothing left to gain, 1 gains found and not applied, 2 SCRIPT
    could not be run.
    """
    from gpulint.cli import _verify

    return _verify.perform(_verify.request_of(_flags(given), given))
