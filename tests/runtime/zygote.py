"""Runs programs under the harness in forks of one process that has imported torch already: the same child
code, without the seconds that importing torch takes each time. Prints one JSON line per program.

    python zygote.py DEVICE JOBS PROGRAM…
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from gpulint.runtime.child import running
from gpulint.runtime.child.harness import Harness, Stop
from gpulint.runtime.record.options import Options


def child(path: str, device: str, out: str) -> None:
    """Run one program to its end; the messages go to `out`, what it prints goes nowhere."""
    log = os.open(out + ".log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    with open(out, "w", encoding="utf-8") as messages:

        def send(message: dict) -> None:
            if "result" in message:
                messages.write(json.dumps(message["result"]))
                messages.flush()

        harness = Harness(Options.from_json({"device": device, "home": os.path.dirname(path)}), send)
        running.prepare(path, [], False)
        harness.start()
        try:
            running.run(path, False, harness.compile)
            harness.report(running.finished(harness))
        except Stop:
            pass
        except BaseException as error:
            running.failed(harness, error, False)
        finally:
            os._exit(0)


def main() -> None:
    device, jobs, paths = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    import torch
    import torch._dynamo
    import torch.utils.checkpoint
    import torch.utils.data

    for name in ("child.harness", "child.running", "observing.forwards", "observing.machine"):
        importlib.import_module(f"gpulint.runtime.{name}")
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()  # what came with the fork stays; looking through it would only copy its pages
    running_now: dict[int, tuple[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder:

        def collect() -> None:
            pid, _ = os.waitpid(-1, 0)
            path, out = running_now.pop(pid)
            text = Path(out).read_text() if os.path.exists(out) else ""
            log = Path(out + ".log").read_text(errors="replace") if os.path.exists(out + ".log") else ""
            print(
                json.dumps({"path": path, "result": json.loads(text) if text else None, "log": log[-3000:]}),
                flush=True,
            )

        for number, path in enumerate(paths):
            out = os.path.join(folder, str(number))
            pid = os.fork()
            if pid == 0:
                child(path, device, out)
            running_now[pid] = (path, out)
            if len(running_now) >= jobs:
                collect()
        while running_now:
            collect()


if __name__ == "__main__":
    main()
