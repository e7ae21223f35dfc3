"""`python -m gpulint`.

`-m` looks for modules in the working directory before anything of this runs: there lies the code to be checked, and a
`types.py` or `typing.py` among it is run in the place of Python's own. The command `gpulint`, and `python -P -m gpulint`, do not
look there. What is imported from here on is not looked for there either.
"""

from __future__ import annotations

import contextlib
import os
import sys

with contextlib.suppress(OSError):  # the working directory may be gone
    here = os.getcwd()
    if sys.path and sys.path[0] in ("", here):
        del sys.path[0]
    for name in sorted(sys.stdlib_module_names & sys.modules.keys()):
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and os.path.dirname(file) == here:
            told = f"gpulint: {file} was run in the place of Python's own module {name}, as python -m has it"
            print(f"{told}; start gpulint, or python -P -m gpulint", file=sys.stderr)

from gpulint.cli import main

if __name__ == "__main__":
    main()
