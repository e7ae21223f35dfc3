"""How large a CUDA context is on a card: a process of its own makes one and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping

from gpulint.memory.accounts.records import Card

_NEAR = 4 * 1024**2  # two readings that differ by less say the same
_CODE = """
import sys, torch
torch.cuda.set_device({index})
torch.cuda.init()
torch.cuda.synchronize()
print("up", flush=True)
sys.stdin.read()
"""


class NotMeasured(RuntimeError):
    """The message says why."""


def measured_context(
    index: int,
    look: Callable[[], Card],
    interpreter: str = sys.executable,
    environment: Mapping[str, str] | None = None,
) -> int:
    """The bytes that a fresh process's context takes on the card that CUDA numbers `index` there.

    `look` tells the state of that card. What it lists for the process counts; where it lists none, the growth of the card's use, in
    which another process that comes or goes would be counted, so two measurements must agree. Takes some seconds, and that much of the card for as long. Raises NotMeasured.
    """
    sizes: list[int] = []
    for _ in range(4):
        sizes.append(_once(index, look, interpreter, os.environ if environment is None else environment))
        for size in sizes[:-1]:
            if abs(size - sizes[-1]) <= _NEAR and size > 0:
                return size
    raise NotMeasured(f"the card's use does not hold still: {sizes} bytes in four measurements")


def _once(index: int, look: Callable[[], Card], interpreter: str, environment: Mapping[str, str]) -> int:
    before = look()
    try:
        process = subprocess.Popen(
            [interpreter, "-c", _CODE.format(index=index)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={name: value for name, value in environment.items() if name != "GPULINT_RUN_FOLDER"},
        )
    except OSError as error:
        raise NotMeasured(f"{interpreter} cannot be started: {error.strerror}") from error
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            if process.stdout.readline() != "up\n":
                last = process.stderr.read().strip().splitlines()[-1:] or ["it ended without a word"]
                raise NotMeasured(f"a fresh process cannot use CUDA: {last[0]}")
            after = look()
            listed = [tenant.bytes for tenant in after.tenants if tenant.pid == process.pid]
            return listed[0] if listed and listed[0] is not None else after.used - before.used
        finally:
            process.kill()
