"""The `gpulint` command. Each subcommand is a file of this package with a click command called `command`.

Only the file of the command in use is imported. `gpulint PATHS` stands for `gpulint check PATHS`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 clean, 1 findings, 2 wrong use or failure, 130 interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given in (["--version"], ["-V"]):
        from gpulint.version import __version__

        print(f"gpulint {__version__}")
        return
    from gpulint.cli._dispatch import run

    sys.exit(run(given))
