"""A process that was asked for its accounts from outside answers into a file."""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def answer(path: str) -> None:
    """Write the accounts of this process to `path`, whole or not at all. Starts neither torch nor CUDA."""
    said: dict[str, Any] = {"executable": sys.executable}
    try:
        from gpulint.memory.accounts.taking import accounts

        said["accounts"] = [one.to_json() for one in accounts()]
    except Exception as error:  # the program must not notice, and the asker has to
        said["error"] = f"{type(error).__name__}: {error}"
    beside = f"{path}.{os.getpid()}"
    with open(beside, "w", encoding="utf-8") as file:
        json.dump(said, file)
    os.replace(beside, path)
