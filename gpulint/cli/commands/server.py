"""`gpulint server`: findings, fixes and documentation in editors."""

from __future__ import annotations

import sys

import click

from gpulint.cli._errors import Failed, say
from gpulint.cli._options import option


@click.command()
@option.flag("-v", "--verbose", "Log every message on standard error.")
@option.flag("--stdio", "What the server does anyway; many clients say it.")
def command(verbose: bool, stdio: bool) -> int:
    """Run the language server over standard input and output. Editors start it; docs/editors.md says how.

    Needs the extra `server`. Exit status: 0 after the editor's shutdown request, 1 when it went without one.
    """
    try:
        from gpulint.server.app import serve
    except ImportError as missing:
        if (missing.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        need = "the language server needs pygls 2, which is not installed: pip install 'gpulint[server]'"
        raise Failed(need) from missing
    if sys.stdin.isatty():
        say("waiting for an editor's messages on standard input; Ctrl-C ends")
    return serve(verbose)
