"""What the measurements of gpulint's own commands share: processes of their own, parts whose errors are data, files of results."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _measure import HERE, ROOT, hardware

LIMIT = 200.0  # seconds for one command, where its caller says nothing else
DEVICE = "BENCHMARK_DEVICE"  # the variable that tells a section's process which device is meant


# -- processes -----------------------------------------------------------------------------------------------


def environment(device: str = "cuda", *path: Path, **more: str) -> dict[str, str]:
    """This process's variables, with gpulint and `path` importable, and no card where the device is the CPU."""
    paths = (str(ROOT), *map(str, path), os.environ.get("PYTHONPATH"))
    hidden = {"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" else {}
    own = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1"}
    return {**os.environ, **own, **hidden, **more}


def python(
    *words: str | Path, folder: Path | None = None, env: Mapping[str, str] | None = None, limit: float = LIMIT
) -> subprocess.CompletedProcess[str]:
    """This interpreter with these arguments, in `folder`; what it printed is kept."""
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=limit)


def gpulint(
    *words: str | Path, folder: Path | None = None, env: Mapping[str, str] | None = None, limit: float = LIMIT
) -> subprocess.CompletedProcess[str]:
    """One of gpulint's commands."""
    return python("-m", "gpulint", *words, folder=folder, env=env or environment(), limit=limit)


def verified(
    device: str, folder: Path, *words: str, limit: float = LIMIT, **variables: str
) -> dict[str, Any]:
    """`gpulint verify` with its exit status and the parts of its JSON that are about limits."""
    where = ("--device", "cpu") if device == "cpu" else ()
    asked = ("verify", "-q", "--output-format", "json", "--reach", "0", *where, *words)
    begin = time.monotonic()
    done = gpulint(*asked, folder=folder, env=environment(device, **variables), limit=limit)
    wall = round(time.monotonic() - begin, 2)
    found: dict[str, Any] = {"status": done.returncode, "wall": wall, "said": done.stderr[-800:]}
    if done.stdout.startswith("{"):
        data = json.loads(done.stdout)
        ranks = data["run"]["ranks"]
        durations = [one["duration"] for rank in ranks for one in rank["samples"] if one["sampled"]]
        found |= {key: data.get(key) for key in ("gate", "foreign", "drift")}
        found["end"] = data["run"]["end"]["message"]
        found["step"] = statistics.median(durations) if durations else None
        kept = ("rank", "pid", "cards", "notes", "peaks")
        found["ranks"] = [{key: rank[key] for key in kept} for rank in ranks]
    return found


def printed(done: subprocess.CompletedProcess[str]) -> str:
    """What a process printed. Raises RuntimeError with its last words where it failed."""
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1][-800:])
    return done.stdout


# -- parts ---------------------------------------------------------------------------------------------------


@dataclass
class Parts:
    """What was done so far. `record` is the data, `problems` what was not as it should be."""

    save: Callable[[], None] = lambda: None  # called after each part: a machine may be taken away
    record: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def part(self, name: str, do: Callable[[], Any]) -> None:
        """Do one part; its error is data too, and does not end the others."""
        begin = time.monotonic()
        try:
            self.record[name] = do()
        except Exception as error:
            self.record[name] = {"error": traceback.format_exc()[-1500:]}
            self.want(False, f"{name}: {type(error).__name__}: {error}")
        self.save()
        print(f"{name}: {time.monotonic() - begin:.1f} s", flush=True)

    def want(self, holds: bool, what: str) -> None:
        """Keep it as a problem unless it holds."""
        if not holds:
            self.problems.append(what)


def run_parts(kind: str, what: str | None, measure: Callable[[str, Parts], None]) -> int:
    """The command of a script that does its parts in this process: `measure` gets the device and what keeps them. The exit status
    is 1 where something was not as it should be."""
    given = command(what).parse_args()
    record: dict[str, Any] = {**about(given.device), "parts": {}}
    path = given.out or result_path(kind, record)
    parts = Parts(record=record["parts"])
    parts.save = lambda: write(path, {**record, "problems": parts.problems}, f"{tempfile.gettempdir()}/")
    measure(given.device, parts)
    print("\n".join(parts.problems) or "all as it should be")
    return int(bool(parts.problems))


def command(what: str | None) -> argparse.ArgumentParser:
    """What every script of parts or sections takes."""
    parser = argparse.ArgumentParser(description=(what or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="where the JSON goes, instead of benchmarks/results/")
    parser.add_argument("--device", choices=("cuda", "cpu"), default=os.environ.get(DEVICE, "cuda"))
    return parser


# -- results -------------------------------------------------------------------------------------------------


def about(device: str) -> dict[str, Any]:
    """The machine, torch and the card: asked in a process of its own, which takes its context with it."""
    ask = (
        "import json, torch; there = torch.cuda.is_available();"
        "print(json.dumps({'torch': torch.__version__, 'cuda': torch.version.cuda,"
        "'device_name': torch.cuda.get_device_name() if there else '',"
        "'cards': [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]}))"
    )
    from gpulint import __version__

    told = {"device": device, **json.loads(printed(python("-c", ask)))}
    return {"hardware": hardware(), "environment": told, "gpulint": __version__}


def result_path(kind: str, record: Mapping[str, Any]) -> Path:
    """`benchmarks/results/<kind>-<gpu>-<date>.json`."""
    told = record.get("environment")
    name = told.get("device_name") if isinstance(told, dict) and told.get("device") == "cuda" else ""
    card = re.sub(r"[^a-z0-9]+", "-", str(name or "cpu").lower()).strip("-")
    return HERE / "results" / f"{kind}-{card}-{datetime.date.today().isoformat()}.json"


def write(path: Path, record: Any, *left_out: str) -> None:
    """Write results down, without the machine's own paths that are `left_out`."""
    text = json.dumps(record, indent=1, default=str).replace(sys.executable, "python")
    for found in left_out:
        text = text.replace(found, "")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


# -- sections ------------------------------------------------------------------------------------------------


def run_sections(
    kind: str, script: str, what: str | None, sections: Mapping[str, Callable[[], Any]], limit: float
) -> int:
    """The command of a script whose sections run in a process each: `script` starts itself for it. The exit status is 1 where
    a section failed."""
    parser = command(what)
    parser.add_argument("--only", nargs="+", choices=sections, metavar="SECTION")
    parser.add_argument("--section", help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.section:
        given.result.write_text(json.dumps(sections[given.section](), default=str))
        return 0
    results = about(given.device)
    path = given.out or result_path(kind, results)
    failed = False
    for name in given.only or sections:
        begin = time.monotonic()
        found = results[name] = _section(script, name, given.device, limit)
        error = found.get("error", "") if isinstance(found, dict) else ""
        failed = failed or bool(error)
        print(f"{name}: {time.monotonic() - begin:.1f} s {error[-300:]}", flush=True)
        write(path, results)
    print(f"written to {path}")
    return int(failed)


def _section(script: str, name: str, device: str, limit: float) -> Any:
    """What a section found, in a process of its own, or its error."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        variables = {**os.environ, DEVICE: device, "IPYTHONDIR": folder}
        try:
            done = python(script, "--section", name, "--result", result, env=variables, limit=limit)
        except subprocess.TimeoutExpired:
            return {"error": f"did not end within {limit:.0f} s"}
        if not result.exists():
            return {"error": done.stderr.strip()[-3000:] or f"exit status {done.returncode}"}
        return json.loads(result.read_text())
