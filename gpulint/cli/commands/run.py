"""`gpulint run`: start a program with the right allocator settings, watch its memory, explain its OOM."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpulint.atomic import write_atomic
from gpulint.cli._errors import Failed, as_error
from gpulint.cli._options import Written, option

if TYPE_CHECKING:
    from gpulint.runtime.record.result import RunResult


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@option("--alloc-conf auto|SETTINGS", "Allocator settings; auto: what measurements recommend.")
@option(
    "--report",
    "Write a report to FILE: a page (.html), or JSON.",
    type=Written(dir_okay=False, path_type=Path),
)
@option.amount("--interval", "Between samples.", least=0.01, default=0.2)
@option.flag("-q", "--quiet", "Say nothing after the program.")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    alloc_conf: str | None, report: Path | None, interval: float, quiet: bool, program: tuple[str, ...]
) -> int:
    """Run PROGRAM, for example `gpulint run --alloc-conf auto -- python train.py --lr 3e-4`.

    Exit status, signals, standard input and output are the program's own. Afterwards standard error gets the
    diagnosis of an uncaught out-of-memory error and the peaks.
    """
    if os.name != "posix":
        raise Failed("`gpulint run` needs a POSIX system (Linux, macOS, WSL)")
    from gpulint.operator import launcher, timeline

    allocator = None
    if alloc_conf is not None:
        version = launcher.torch_version_of(launcher.interpreter_of(program))
        with as_error(click.UsageError, ValueError, of="--alloc-conf"):
            allocator = launcher.allocator_environment(alloc_conf, version, os.environ)
    if not quiet:
        _say(list(launcher.doubts(os.environ, allocator)))
    try:
        ended = launcher.launch(program, allocator, interval)
    except launcher.CannotStart as error:
        _say([str(error)])
        return error.status
    try:
        processes = timeline.read_notes(ended.folder)
        written, trouble = None, ""
        if processes and report is not None:
            result = timeline.to_result(program, ended, processes)
            try:
                _write_report(result, report)
                written = report
            except OSError as error:
                trouble = f"no report could be written: {error.strerror or error}"
        if not quiet:
            _say(timeline.summary(ended, processes, written))
        if trouble:
            _say([trouble])
    except Exception as error:  # whatever happens here, the status must be the program's
        _say([f"the report could not be made: {type(error).__name__}: {error}"])
    finally:
        launcher.remove(ended.folder)
    return launcher.leave_as(ended)


def _write_report(result: RunResult, path: Path) -> None:
    """The verifier's page of the run (.html), or the run itself in the form of the verifier's results."""
    if path.suffix.lower() in (".html", ".htm"):
        from gpulint.reports.page import page
        from gpulint.reports.verify import document
        from gpulint.runtime.parent.verdict import verify

        text = page(document(verify(" ".join(result.command), result, ())))
    else:
        text = json.dumps(result.to_json(), indent=1) + "\n"
    write_atomic(str(path), text.encode())


def _say(lines: list[str]) -> None:
    """To standard error without a buffer: one that cannot be written at exit would change the status."""
    data = "".join(f"gpulint: {line}\n" for line in lines).encode(errors="backslashreplace")
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(sys.stderr.fileno(), data) :]
