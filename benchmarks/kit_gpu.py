"""The memory kit on a GPU: what the helpers that people write by hand free, and what the kit frees.

    python benchmarks/kit_gpu.py [--out FILE] [--only SECTION ...]

Each section runs in a process of its own and gives a dict; all of them go to `kit-<gpu>-<date>.json`. Without CUDA
the sections that need it are reported as skipped, the others run. Needs torch; click and nvidia-ml-py are used
where they are installed.
"""

from __future__ import annotations

import importlib
import sys
from functools import partial
from typing import Any

from _parts import run_sections
from kit_cases import SECTIONS, device

for _sections in ("library", "commands"):
    importlib.import_module(f"kit_cases.{_sections}")


def section(name: str) -> dict[str, Any]:
    rows, needs_cuda, function = SECTIONS[name]
    skipped = needs_cuda and device() != "cuda"
    return {"rows": rows, **({"skipped": "needs a CUDA device"} if skipped else function())}


if __name__ == "__main__":
    sys.exit(run_sections("kit", __file__, __doc__, {name: partial(section, name) for name in SECTIONS}, 580))
