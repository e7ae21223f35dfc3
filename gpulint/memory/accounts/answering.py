"""A process that was asked from outside answers into a file: with its accounts, or with what became of a memory snapshot."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any


def answer(path: str, request: str = "") -> None:
    """Write the accounts of this process to `path`, whole or not at all. With a request, which is JSON with the `file` of a
    snapshot and the `seconds` to record before it, the answer comes after these, from a thread of its own. Starts neither torch
    nor CUDA. The other side may be of another version: this module and function are found by their names."""
    if request:
        threading.Thread(target=_write, args=(path, request), name="gpulint-snapshot", daemon=True).start()
    else:
        _write(path, request)


def _write(path: str, request: str) -> None:
    said: dict[str, Any] = {"executable": sys.executable}
    try:
        if request:
            said |= _recorded(**json.loads(request))
        else:
            from gpulint.memory.accounts import accounts

            said["accounts"] = [one.to_json() for one in accounts()]
    except Exception as error:  # the program must not notice, and the asker has to
        said["error"] = f"{type(error).__name__}: {error}"
    beside = f"{path}.{os.getpid()}"
    with open(beside, "w", encoding="utf-8") as file:
        json.dump(said, file)
    os.replace(beside, path)


def _recorded(file: str, seconds: float) -> dict[str, Any]:
    """Record for so long, unless the program itself does, and write what torch has then."""
    from gpulint.memory.device import UNUSED, cuda_started

    if not cuda_started():
        return {"error": UNUSED}
    from gpulint.runtime.probes import cuda

    with cuda.recorded() as begun:
        if begun:
            time.sleep(seconds)
        return {"message": cuda.dump(file), "written": os.path.exists(file)}
