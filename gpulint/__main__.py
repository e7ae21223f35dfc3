"""`python -m gpulint`."""

from __future__ import annotations

import contextlib
import os
import sys

# `-m` looks for modules in the working directory first. There lies the code to be checked, which must never be
# imported, and a `copy.py` or `types.py` among it would take the place of the standard library's.
with contextlib.suppress(OSError):  # it may be gone
    if sys.path and sys.path[0] in ("", os.getcwd()):
        del sys.path[0]

from gpulint.cli import main

if __name__ == "__main__":
    main()
