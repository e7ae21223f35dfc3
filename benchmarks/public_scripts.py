"""Public training scripts, run plainly or under the verifier: what `planted.py` and `trial_gains.py` share.

    python benchmarks/public_scripts.py        # lists repositories at which commits

CHECKOUTS of those has a folder `owner+name` for each repository listed. Scripts run in fresh copies, with synthetic
data (`_scripts.py`) and, in place of torchvision, matplotlib and requests, the packages in `standins/`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from _measure import HERE, tail
from _scripts import Script, table

LIMIT = 240.0  # seconds for one run


@dataclass(frozen=True, slots=True)
class Printed:
    """A run as seen from outside: its lines of standard output, its last words on standard error, how it ended and how
    many seconds it took."""

    lines: tuple[str, ...]
    errors: str
    status: int
    seconds: float
    watched: Mapping[str, Any] | None = None


class Bench:
    """Runs scripts in copies below one folder, on one device."""

    def __init__(self, checkouts: Path, device: str, folder: Path) -> None:
        self.checkouts = checkouts
        self.device = device
        self.folder = folder

    def run(self, script: Script, watch: bool) -> Printed:
        """One run in a fresh copy. A copy is always at the same place: scripts print paths."""
        home = self.folder / re.sub(r"\W+", "-", script.name)
        shutil.rmtree(home, ignore_errors=True)
        cwd = script.prepare(self.checkouts, home / "code")
        environment = self.environment(script, home)
        arguments = script.command(self.device)
        if not watch:
            return follow([sys.executable, script.script, *arguments], cwd, environment)
        answer = home / "watched.json"
        asked = {"target": script.script, "arguments": arguments, "device": self.device}
        order = json.dumps({**asked, "answer": str(answer)})
        printed = follow([sys.executable, __file__, "watch", order], cwd, environment)
        if not answer.exists():
            raise RuntimeError(f"gpulint.verify did not return: {printed.errors[-1000:]}")
        return replace(printed, watched=json.loads(answer.read_text(encoding="utf-8")))

    def environment(self, script: Script, home: Path) -> dict[str, str]:
        installed = home / "site-packages"  # the stand-ins are installed packages, not the user's own code
        installed.mkdir(parents=True)
        for name in script.standins:
            source = HERE / "standins" / name
            if source.is_dir():
                shutil.copytree(source, installed / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source.with_suffix(".py"), installed)
        code = home / "code" / script.folder
        paths = [
            str(installed),
            *(str((code / script.cwd / p).resolve() if p else code) for p in script.path),
        ]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GPULINT_")}
        environment["PYTHONPATH"] = os.pathsep.join([*paths, *filter(None, [environment.get("PYTHONPATH")])])
        environment |= {"PYTHONUNBUFFERED": "1", "PYTHONHASHSEED": "0", "NO_COLOR": "1"}
        environment |= {"STANDIN_TRAIN": str(script.images[0]), "STANDIN_TEST": str(script.images[1])}
        if self.device == "cpu":
            environment |= {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
        return environment | dict(script.environment)


def follow(command: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> Printed:
    """Run a command; interrupt it when it takes too long."""
    with tempfile.TemporaryFile() as errors:
        begin = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=cwd, env=dict(environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
        )  # fmt: skip
        assert process.stdout is not None
        with interrupted_after(process, LIMIT):
            lines = tuple(split(process.stdout.fileno()))
            status = process.wait()
        seconds = time.perf_counter() - begin
        process.stdout.close()
        words = tail(errors, 4000)
    return Printed(lines, words, status, seconds)


def split(stream: int) -> Iterator[str]:
    """Lines as they arrive, ended by a line feed or a carriage return; empty ones are left out."""
    rest = b""
    while data := os.read(stream, 1 << 16):
        *whole, rest = (rest + data).replace(b"\r", b"\n").split(b"\n")
        yield from (line.decode(errors="replace") for line in whole if line.strip())
    if rest.strip():
        yield rest.decode(errors="replace")


@contextmanager
def interrupted_after(process: subprocess.Popen[bytes], seconds: float) -> Iterator[None]:
    """Ctrl-C after so many seconds, a kill a minute later."""
    timers = [
        threading.Timer(seconds + later, process.send_signal, [word])
        for later, word in ((0, signal.SIGINT), (60, signal.SIGKILL))
    ]
    for timer in timers:
        timer.start()
    try:
        yield
    finally:
        for timer in timers:
            timer.cancel()


def watch(order: Mapping[str, Any]) -> int:
    """In a process of its own: the script under the verifier, its output passed through, the answer in a file."""
    import gpulint

    result = gpulint.verify(
        order["target"], order["arguments"], device=order["device"], timeout=LIMIT - 20, capture=False
    )
    Path(order["answer"]).write_text(json.dumps(told(result)), encoding="utf-8")
    return 0


def told(result: Any) -> dict[str, Any]:
    """What of a verification is written down: no text of the script's source."""
    rank = result.run.ranks[0] if result.run.ranks else None
    samples = rank.samples if rank else ()
    verdicts = [
        {"code": v.code, "file": Path(v.file).name, "line": v.line, "status": v.status, "text": v.text}
        for v in result.verdicts
    ]
    return {
        "exit_code": result.exit_code,
        "end": result.run.end.reason,
        "message": result.run.end.message,
        "where": (result.run.end.traceback or "").strip().splitlines()[-1:],
        "seconds": round(result.run.seconds, 2),
        "steps": dict(Counter(s.kind for s in samples)),
        "sampled": dict(Counter(s.kind for s in samples if s.sampled)),
        "warmup": rank.warmup if rank else None,
        "boundary": rank.boundary if rank else None,
        "statuses": dict(Counter(v.status for v in result.verdicts)),
        "verdicts": verdicts,
        "unpredicted": [
            {"file": Path(u.file).name, "line": u.line, "device": u.device, "host": u.host, "text": u.text}
            for u in result.unpredicted
        ],
        "notes": list(rank.notes) if rank else [],
        "environment": {**rank.environment.to_json(), "executable": None} if rank else {},
    }


def described(script: Script, device: str) -> dict[str, Any]:
    """What was run, so that it can be run again."""
    return {
        "name": script.name,
        "repository": script.repository,
        "commit": script.commit,
        "script": "/".join(filter(None, (script.folder, script.cwd, script.script))),
        "arguments": " ".join(script.command(device)),
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["watch"]:
        sys.exit(watch(json.loads(sys.argv[2])))
    for entry in (one for kind in ("script", "fixed", "planted") for one in table(kind)):
        print(entry["repository"], entry["commit"], entry["name"], sep="\t")
