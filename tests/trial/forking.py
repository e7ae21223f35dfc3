"""Runs scripts for trials in forks of one process that has imported torch already: the same child code and the same overlay,
without the seconds that importing torch takes each time.

As a program it reads one JSON object a line from standard input, a run, and answers with one line, its result.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent


class Zygote:
    """Starts the process and gives it runs. `execute` is what `try_fixes` takes."""

    def __init__(self) -> None:
        environment = {
            **os.environ,
            "PYTHONHASHSEED": "0",
            "OMP_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "",
        }
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        self.runs = 0

    def execute(self, what: Any, label: str) -> Any:
        from gpulint.runtime.record.result import End, RankResult, RunResult

        self.runs += 1
        order = {
            "target": os.path.abspath(what.target) if not what.module else what.target,
            "arguments": list(what.arguments),
            "module": what.module,
            "options": what.options().to_json(),
            "environment": dict(what.environment),
            "timeout": what.timeout or 120,
            "cwd": what.cwd or os.getcwd(),
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if answer["result"] is None:
            end = End.from_json({"reason": answer["reason"], "message": "the process ended without a report"})
            return RunResult((), end, answer["seconds"], (), answer["out"], answer["err"])
        rank = RankResult.from_json(answer["result"])
        return RunResult((), rank.end, answer["seconds"], (rank,), answer["out"], answer["err"])

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


# -- in the process ----------------------------------------------------------------------------------------------


def child(order: dict[str, Any], folder: str) -> None:
    """Run one program to its end, in this process."""
    from gpulint.runtime.child import running
    from gpulint.runtime.child.harness import Harness, Stop
    from gpulint.runtime.record.options import Options
    from gpulint.runtime.trying import overlay

    if order["module"] or b"gc." in Path(order["target"]).read_bytes():
        gc.unfreeze()  # what a collection costs is measured
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.environ.update(order["environment"])
    paths = order["environment"].get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [path for path in paths if path and path != order["environment"].get(overlay.FOLDER)]
    os.chdir(order["cwd"])
    overlay.ensure()
    options = Options.from_json(order["options"])

    def send(message: dict[str, Any]) -> None:
        if "result" in message:
            Path(folder, "result").write_text(json.dumps(message["result"]))

    target, module = order["target"], order["module"]
    harness = Harness(options, send)
    running.prepare(target, order["arguments"], module)
    harness.start()
    try:
        running.run(target, module, harness.compile)
        harness.report(running.finished(harness))
    except Stop:
        pass
    except BaseException as error:
        running.failed(harness, error, module)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def run(order: dict[str, Any], folder: str) -> dict[str, Any]:
    """Fork for one run, wait for it, and say what came of it."""
    import time

    begin = time.monotonic()
    pid = os.fork()
    if pid == 0:
        child(order, folder)
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        if time.monotonic() - begin > order["timeout"]:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            break
        time.sleep(0.01)
    took = time.monotonic() - begin

    def read(name: str) -> str:
        path = Path(folder, name)
        return path.read_text(errors="replace") if path.exists() else ""

    result = read("result")
    reason = "timeout" if took > order["timeout"] else "killed"
    return {
        "result": json.loads(result) if result else None,
        "reason": reason,
        "seconds": took,
        "out": read("out"),
        "err": read("err"),
    }


def main() -> None:
    sys.path.insert(0, str(ROOT))
    answers = os.fdopen(os.dup(1), "w")
    import torch
    import torch._dynamo
    import torch.utils.checkpoint
    import torch.utils.data

    for name in (
        "child.harness",
        "child.running",
        "observing.forwards",
        "observing.machine",
    ):
        importlib.import_module(f"gpulint.runtime.{name}")
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()  # what came with the fork stays; looking through it would only copy its pages
    for line in sys.stdin:
        with tempfile.TemporaryDirectory() as folder:
            answer = run(json.loads(line), folder)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
