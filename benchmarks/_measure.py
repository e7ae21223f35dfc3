"""What the benchmarks share: measuring a command, describing the machine, writing results, printing a table."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT))  # what imports this measures the gpulint of this checkout, installed or not


@dataclass(frozen=True)
class Run:
    """One call of a command: CPU and wall seconds, peak resident MiB of its largest process, how it ended.

    The peak is never below what the measuring process itself holds (about 20 MiB): it counts the fork.
    """

    cpu: float
    wall: float
    peak_mib: float
    status: int
    timed_out: bool
    last_words: str
    alarm: str = ""

    def problem(self, ok: Sequence[int]) -> str:
        """Why this run cannot be counted, or an empty string."""
        if self.timed_out:
            return f"gave no result within {self.wall:.0f} s"
        if self.alarm:
            return f"did not check everything: {self.alarm}"
        if self.status not in ok:
            return f"failed with status {self.status}: {(self.last_words or 'no message').splitlines()[-1]}"
        if "Traceback (most recent call last)" in self.last_words:
            return f"crashed: {self.last_words.splitlines()[-1]}"
        return ""


def run_measured(command: Sequence[str], folder: Path, limit: float, alarm: str = "") -> Run:
    """Run `command` in `folder` and measure its process tree; kill it after `limit` seconds. POSIX only.

    A line of its output that contains `alarm` is kept: a tool that failed inside was quick for no merit.
    """
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("GPULINT_", "RUFF_"))
    }
    environment |= {"NO_COLOR": "1", "TERM": "dumb"}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        expired = threading.Event()

        def give_up() -> None:
            expired.set()
            os.killpg(process.pid, signal.SIGKILL)

        timer = threading.Timer(limit, give_up)
        timer.start()
        # wait4 gives the resources of this child and of the children it has waited for, and of nothing else.
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        return Run(
            cpu=usage.ru_utime + usage.ru_stime,
            wall=wall,
            peak_mib=usage.ru_maxrss / (1024 if platform.system() != "Darwin" else 1024 * 1024),
            status=process.returncode,
            timed_out=expired.is_set(),
            last_words=tail(err),
            alarm=first_line_with(alarm, out),
        )


def first_line_with(text: str, stream: IO[bytes]) -> str:
    """The first line written to `stream` that contains `text`, if any."""
    if not text:
        return ""
    stream.seek(0)
    lines = (line.decode(errors="replace").strip() for line in stream)
    return next((line for line in lines if text in line), "")


def tail(stream: IO[bytes], size: int = 2000) -> str:
    """The last non-empty part of what a process wrote to `stream`."""
    end = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, end - size))
    return stream.read().decode(errors="replace").strip()


def find_script(name: str, folders: Iterable[Path]) -> Path | None:
    """The console script `name` of the first virtual environment that has it, else the one on PATH."""
    for folder in folders:
        script = folder / ("Scripts" if os.name == "nt" else "bin") / name
        if script.is_file():
            # Not resolved: the interpreter of a virtual environment is found through the link.
            return script.absolute()
    found = shutil.which(name)
    return Path(found) if found else None


def documented(text: str | None) -> argparse.ArgumentParser:
    """A parser whose `--help` begins with a script's documentation, as it is written."""
    return argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)


def read_toml(name: str) -> dict[str, Any]:
    """A table that stands beside the scripts."""
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    found: dict[str, Any] = toml.loads((HERE / name).read_text(encoding="utf-8"))
    return found


def hardware() -> dict[str, str | int | float]:
    """What a reader needs to compare figures with another machine's."""
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count() or 0,
        "load_at_start": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
    }


def cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    if platform.system() == "Darwin":
        done = subprocess.run(
            ["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, check=False
        )
        if done.stdout.strip():
            return done.stdout.strip()
    return platform.processor() or platform.machine()


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table with its columns aligned, so that it reads well in a terminal too."""
    cells = [list(head), *(list(row) for row in rows)]
    widths = [max(3, *(len(row[column]) for row in cells)) for column in range(len(head))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def about(device: str) -> dict[str, Any]:
    """The machine, torch and the card: asked in a process of its own, which takes its context with it."""
    ask = (
        "import json, torch; there = torch.cuda.is_available();"
        "print(json.dumps({'torch': torch.__version__, 'cuda': torch.version.cuda,"
        "'device_name': torch.cuda.get_device_name() if there else '',"
        "'cards': [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]}))"
    )
    from gpulint import __version__

    done = subprocess.run([sys.executable, "-c", ask], stdout=subprocess.PIPE, check=True, text=True)
    told = {"device": device, **json.loads(done.stdout)}
    return {"hardware": hardware(), "environment": told, "gpulint": __version__}


def result_path(kind: str, record: Mapping[str, Any]) -> Path:
    """`benchmarks/results/<kind>-<gpu>-<date>.json`."""
    told = record.get("environment")
    name = told.get("device_name") if isinstance(told, dict) and told.get("device") == "cuda" else ""
    card = re.sub(r"[^a-z0-9]+", "-", str(name or "cpu").lower()).strip("-")
    return HERE / "results" / f"{kind}-{card}-{datetime.date.today().isoformat()}.json"


def write(path: Path, record: Any) -> None:
    """Write results down, without the machine's own path of Python."""
    text = json.dumps(record, indent=1, default=str).replace(sys.executable, "python")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")
