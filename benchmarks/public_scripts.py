"""The verifier on public training scripts: does it leave their own output as it is, and what does it cost?

    python benchmarks/public_scripts.py compare CHECKOUTS OUT.json [--device cpu|cuda] [--jobs 2] [--only NAME]
    python benchmarks/public_scripts.py overhead CHECKOUTS OUT.json [--device cpu|cuda] [--pairs 3] [--side-by-side]
    python benchmarks/public_scripts.py list        # which repositories at which commits, and the arguments

CHECKOUTS has a folder `owner+name` for each repository of `list`. Scripts run in fresh copies, with synthetic
data (`_scripts.py`) and, in place of torchvision, matplotlib and requests, the packages in `standins/`.

`compare` runs each script plainly to its end and then under `gpulint.verify`, and compares what both print on
standard output, line by line: the watched script's lines must be the first of the plain one's. Before that,
durations, rates, clock times and addresses are replaced by a mark (`normalised`): all other figures count. A script
that differs is run plainly once more: where two plain runs differ too, it is compared up to there only.

`overhead` runs the scripts that have a loop of 200 steps, plain and watched by turns, and takes the wall time
from the line of their first step to that of their last. Watched, 20 steps are sampled and the script goes on to its
end, as it does where lines with findings have not run. `--verify name=value` sets options of `gpulint.verify`.

Where a machine's pace varies by more than what is measured, turns say little. `--side-by-side` runs the two of a pair
at the same time instead, so that it varies for both: one on the first GPU and the first half of the cores, the other on
the second. They change places with every pair, and two pairs that follow each other are one reading (`couples`): what
one place is faster than the other cancels out in it. The one that gets to its loop sooner is started later by that.
`--plain` runs the plain script in the watched one's stead: what is left then is the method's own error.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import math
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from _measure import hardware, table  # noqa: E402
from _scripts import SCRIPTS, Loop, Script, chosen, missing  # noqa: E402

LIMIT = 240.0  # seconds for one run
FIRST = 20  # the steps of which the figures are given apart
NUMBER = r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
TIMED = re.compile(
    rf"0x[0-9a-f]+|\d\d:\d\d(?::\d\d)?"
    rf"|(?:\b(?:[Tt]ime|[Ee]lapsed|mfu|iter_dt)\b|\bms/batch\b|\bData\b(?= +{NUMBER} \())[ :=]*{NUMBER}(?: *\( *{NUMBER}\))?"
    rf"(?:\s?(?:ms|s|%))?|\({NUMBER}s\)|{NUMBER}\s?(?:ms|s/it|it/s|sec(?:onds)?)\b"
)


def normalised(line: str) -> str:
    """The line without what another run measures anew: durations, rates, clock times, addresses."""
    return TIMED.sub("~", line.rstrip())


# -- running one script --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Printed:
    """A run as seen from outside: its lines of standard output with the seconds since the start at which each
    was complete, its last words on standard error, how it ended and how long it took."""

    lines: tuple[str, ...]
    stamps: tuple[float, ...]
    errors: str
    status: int
    seconds: float
    begun: float = 0.0  # on the clock that all runs share
    watched: Mapping[str, Any] | None = None

    def figures(self) -> list[str]:
        """The lines to compare."""
        return [normalised(line) for line in self.lines]


@dataclass(frozen=True, slots=True)
class Seat:
    """The part of the machine that a run may use."""

    gpu: int | None
    cores: frozenset[int]


def no_wait() -> None:
    """Start at once."""


class Bench:
    """Runs scripts in copies below one folder, on one device."""

    def __init__(self, checkouts: Path, device: str, verify: Mapping[str, Any], folder: Path) -> None:
        self.checkouts = checkouts
        self.device = device
        self.verify = verify
        self.folder = folder
        self.watcher = HERE / "public_scripts.py"  # what is started to watch a script

    def run(
        self,
        script: Script,
        watch: bool,
        loop: Loop | None = None,
        seat: Seat | None = None,
        wait: Callable[[], None] = no_wait,
    ) -> Printed:
        """One run in a fresh copy. A copy is always at the same place: scripts print paths. `wait` returns when the run
        is to start; with a `seat` the calling thread moves there, and the run with it."""
        home = self.folder / re.sub(r"\W+", "-", script.name)
        shutil.rmtree(home, ignore_errors=True)
        cwd = script.prepare(self.checkouts, home / "code", loop)
        environment = self._environment(script, home)
        arguments = script.command(self.device, loop)
        if seat is not None:
            os.sched_setaffinity(0, seat.cores)  # this thread's, which what it starts inherits
            environment |= {} if seat.gpu is None else {"CUDA_VISIBLE_DEVICES": str(seat.gpu)}
        wait()
        if not watch:
            return follow([sys.executable, script.script, *arguments], cwd, environment)
        answer = home / "watched.json"
        asked = {
            "target": script.script,
            "arguments": arguments,
            "device": self.device,
            "answer": str(answer),
        }
        order = json.dumps({**asked, "options": dict(self.verify)})
        printed = follow([sys.executable, str(self.watcher), "watch", order], cwd, environment)
        if not answer.exists():
            raise RuntimeError(f"gpulint.verify did not return: {printed.errors[-1000:]}")
        return replace(printed, watched=json.loads(answer.read_text(encoding="utf-8")))

    def _environment(self, script: Script, home: Path) -> dict[str, str]:
        installed = (
            home / "site-packages"
        )  # so that the stand-ins are installed packages, not the user's own code
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
    """Run a command, note when each line of its output is complete; interrupt it when it takes too long."""
    lines, stamps = [], []
    with tempfile.TemporaryFile() as errors:
        begin = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        assert process.stdout is not None
        with interrupted_after(process, LIMIT):
            for line in split(process.stdout.fileno()):
                lines.append(line)
                stamps.append(time.perf_counter() - begin)
            status = process.wait()
        seconds = time.perf_counter() - begin
        process.stdout.close()
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - 4000))
        words = errors.read().decode(errors="replace").strip()
    return Printed(tuple(lines), tuple(stamps), words, status, seconds, begin)


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
    from gpulint.findings import Finding, Severity
    from gpulint.runtime.parent.runner import Run
    from gpulint.verifying import program_findings

    begin = time.perf_counter()
    findings = program_findings(Run(order["target"]))
    linted = time.perf_counter() - begin
    options = dict(order["options"])
    if options.pop("to_end", False):  # sampled steps first, then on to the script's end for what never runs
        never = Finding("GPU101", "held-graph", Severity.INFO, "never", "never.py", 1, 1, 1, 2)
        options |= {"findings": [*findings, never], "reach": 1e6}
    result = gpulint.verify(
        order["target"],
        order["arguments"],
        device=order["device"],
        timeout=LIMIT - 20,
        capture=False,
        **options,
    )
    answer = {**told(result), "lint_seconds": round(linted, 2), "findings": len(findings)}
    Path(order["answer"]).write_text(json.dumps(answer), encoding="utf-8")
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


# -- compare -------------------------------------------------------------------------------------------------


def first_difference(plain: Sequence[str], other: Sequence[str]) -> int | None:
    """The number of the first line of `other` that is not as in `plain`; None where it is its beginning."""
    for number, line in enumerate(other):
        if number >= len(plain) or plain[number] != line:
            return number
    return None


def compare(bench: Bench, script: Script) -> dict[str, Any]:
    """A script plain and watched, and what is wrong with that."""
    plain = bench.run(script, watch=False)
    record: dict[str, Any] = {
        **described(script, bench.device),
        "validates": script.validates,
        "plain": {"status": plain.status, "seconds": round(plain.seconds, 2), "lines": len(plain.lines)},
    }
    if plain.status:
        return {**record, "problems": [f"fails without gpulint: {last_line(plain.errors)}"]}
    watched = bench.run(script, watch=True)
    assert watched.watched is not None
    record["watched"] = {**watched.watched, "wall": round(watched.seconds, 2), "lines": len(watched.lines)}
    record["difference"] = difference(bench, script, plain, watched)
    return {**record, "problems": problems(record, last_line(watched.errors))}


def difference(bench: Bench, script: Script, plain: Printed, watched: Printed) -> dict[str, Any] | None:
    """Where the watched script's output leaves the plain one's, if two plain runs are the same up to there."""
    number = first_difference(plain.figures(), watched.figures())
    if number is None:
        return None
    again = first_difference(plain.figures(), bench.run(script, watch=False).figures())
    shown = plain.lines[number] if number < len(plain.lines) else None
    return {
        "line": number + 1,
        "plain": shown,
        "watched": watched.lines[number],
        "two plain runs differ at": None if again is None else again + 1,
        "counts": again is None or number < again,
    }


def problems(record: Mapping[str, Any], words: str) -> list[str]:
    """What the verifier did wrong to a script that runs well without it."""
    watched, found = record["watched"], []
    if watched["exit_code"] == 2:
        found.append(f"status 2: {watched['message']} {words}")
    elif watched["end"] not in ("stopped", "finished"):
        found.append(f"ended as {watched['end']}: {watched['message']}")
    if record["difference"] is not None and record["difference"]["counts"]:
        found.append(f"prints something else from line {record['difference']['line']} on")
    if not watched["sampled"]:
        found.append("no step was sampled")
    elif not {"train", "explicit"} & watched["sampled"].keys():
        found.append(
            f"of its training no step was sampled, only {watched['sampled']['eval']} evaluation steps"
        )
    return found


def described(script: Script, device: str, loop: Loop | None = None) -> dict[str, Any]:
    """What was run, so that it can be run again."""
    return {
        "name": script.name,
        "repository": script.repository,
        "commit": script.commit,
        "script": "/".join(filter(None, (script.folder, script.cwd, script.script))),
        "arguments": " ".join(script.command(device, loop)),
    }


def last_line(text: str) -> str:
    return text.splitlines()[-1] if text else ""


def compared_table(records: Sequence[Mapping[str, Any]]) -> str:
    head = ("script", "plain", "watched", "end", "train", "eval", "lines", "output", "verdicts", "status")
    return table(head, [compared_row(record) for record in records])


def compared_row(record: Mapping[str, Any]) -> tuple[str, ...]:
    plain, watched = record.get("plain"), record.get("watched")
    if plain is None or watched is None:
        return (record["name"], *("",) * 6, record.get("left_out") or record["problems"][0], "", "")
    differs = record["difference"]
    same = (
        "the same" if differs is None else f"differs at {differs['line']}" if differs["counts"] else "varies"
    )
    verdicts = [f"{count} {status}" for status, count in sorted(watched["statuses"].items())]
    verdicts += [f"{len(watched['unpredicted'])} unpredicted"] if watched["unpredicted"] else []
    return (
        record["name"],
        f"{plain['seconds']:.1f} s",
        f"{watched['wall']:.1f} s",
        watched["end"],
        *(f"{watched['sampled'].get(k, 0)} of {watched['steps'].get(k, 0)}" for k in ("train", "eval")),
        f"{watched['lines']} of {plain['lines']}",
        same,
        ", ".join(verdicts),
        str(watched["exit_code"]),
    )


# -- overhead ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Timed:
    """The wall time of one run: until the first step's line, from there to the last's, and a step's within the
    first 20 and after them."""

    start: float
    loop: float
    early: float
    late: float
    total: float
    begun: float = 0.0

    def to_json(self) -> dict[str, float]:
        milliseconds = {"early_ms": round(1000 * self.early, 3), "late_ms": round(1000 * self.late, 3)}
        return {
            "start": round(self.start, 3),
            "loop": round(self.loop, 4),
            **milliseconds,
            "total": round(self.total, 2),
        }


def timed(printed: Printed, loop: Loop) -> Timed:
    """The times of a run by the lines it printed for its steps."""
    stamps = [
        at for at, line in zip(printed.stamps, printed.lines, strict=True) if re.search(loop.line, line)
    ]
    edge = FIRST // loop.every
    if len(stamps) < 2 * edge or len(stamps) < 3:
        raise RuntimeError(f"only {len(stamps)} lines tell of steps: {last_line(printed.errors)}")
    early = (stamps[edge] - stamps[0]) / (edge * loop.every)
    late = (stamps[-1] - stamps[edge]) / ((len(stamps) - 1 - edge) * loop.every)
    return Timed(stamps[0], stamps[-1] - stamps[0], early, late, printed.seconds, printed.begun)


def overhead(bench: Bench, script: Script, pairs: int) -> dict[str, Any]:
    """Plain and watched by turns, with the ratios of each pair."""
    loop = script.loop
    assert loop is not None
    bench.run(script, False, loop)  # files come into memory, kernels into their caches
    plain, watched, told_last = [], [], {}
    for _ in range(pairs):
        plain.append(timed(bench.run(script, False, loop), loop))
        run = bench.run(script, True, loop)
        told_last = to_its_end(script, run)
        watched.append(timed(run, loop))
    return {**described(script, bench.device, loop), **compared(plain, watched), **of_the_run(told_last)}


def to_its_end(script: Script, run: Printed) -> dict[str, Any]:
    """What the verifier says of a run that came to its end."""
    said = dict(run.watched or {"end": "finished"})
    if said.get("end") != "finished":
        raise RuntimeError(f"{script.name} did not run to its end: {said.get('message')}")
    return said


def compared(plain: Sequence[Timed], watched: Sequence[Timed]) -> dict[str, Any]:
    return {
        "plain": [one.to_json() for one in plain],
        "watched": [one.to_json() for one in watched],
        "ratios": [round(w.loop / p.loop, 4) for p, w in zip(plain, watched, strict=True)],
        "ratio": median_ratio("loop", plain, watched),
        "ratio_early": median_ratio("early", plain, watched),
        "ratio_late": median_ratio("late", plain, watched),
        "ratio_whole_process": median_ratio("total", plain, watched),
    }


def of_the_run(said: Mapping[str, Any]) -> dict[str, Any]:
    known = {name: said.get(name) for name in ("lint_seconds", "steps", "sampled", "environment")}
    return {**known, "problems": []}


def median_ratio(what: str, plain: Sequence[Timed], watched: Sequence[Timed]) -> float:
    return round(
        statistics.median(getattr(w, what) / getattr(p, what) for p, w in zip(plain, watched, strict=True)), 4
    )


# -- overhead, side by side ----------------------------------------------------------------------------------


def seats(device: str) -> tuple[Seat, Seat]:
    """Both halves of the machine."""
    cores = sorted(os.sched_getaffinity(0))
    half = len(cores) // 2
    gpus = (0, 1) if device == "cuda" else (None, None)
    return Seat(gpus[0], frozenset(cores[:half])), Seat(gpus[1], frozenset(cores[half:]))


def side_by_side(bench: Bench, script: Script, pairs: int, watch: bool) -> dict[str, Any]:
    """Plain and watched at the same time, in changing places. Not `watch`: plain and plain."""
    loop = script.loop
    assert loop is not None
    places = seats(bench.device)
    together(bench, script, watch, places, 0.0)  # files come into memory, kernels into their caches
    plain, watched, lead, told_last = [], [], 0.0, {}
    for number in range(2 * (pairs // 2)):
        first, second = places if number % 2 == 0 else places[::-1]
        one, other = together(bench, script, watch, (first, second), lead)
        told_last = to_its_end(script, other)
        plain.append(timed(one, loop))
        watched.append(timed(other, loop))
        lead = max(0.0, watched[-1].start - plain[-1].start)
    shares = [round(overlap(p, w), 3) for p, w in zip(plain, watched, strict=True)]
    figures = {**compared(plain, watched), "overlaps": shares}
    return {
        **described(script, bench.device, loop),
        **figures,
        **coupled(figures["ratios"]),
        **of_the_run(told_last),
    }


def together(
    bench: Bench, script: Script, watch: bool, places: tuple[Seat, Seat], lead: float
) -> tuple[Printed, Printed]:
    """A plain run in the first place and a watched one, started `lead` seconds before, in the second."""
    ready = threading.Barrier(2)

    def later() -> None:
        ready.wait()
        time.sleep(lead)

    waits = (later, ready.wait)
    benches = [
        Bench(bench.checkouts, bench.device, bench.verify, bench.folder / name) for name in ("one", "two")
    ]
    with ThreadPoolExecutor(2) as pool:  # new threads for each pair: they stay where they have moved to
        jobs = [
            pool.submit(benches[i].run, script, watch and i == 1, script.loop, places[i], waits[i])
            for i in (0, 1)
        ]
        one, other = (job.result() for job in jobs)
    return one, other


def overlap(plain: Timed, watched: Timed) -> float:
    """The part of the plain loop's time in which the watched one was in its own."""
    begin, end = (
        max(plain.begun + plain.start, watched.begun + watched.start),
        plain.begun + plain.start + plain.loop,
    )
    end = min(end, watched.begun + watched.start + watched.loop)
    return max(0.0, end - begin) / plain.loop


def coupled(ratios: Sequence[float]) -> dict[str, Any]:
    """Two pairs with changed places are one reading: their geometric mean. The middle of the readings, and between which
    figures it lies 95 times of 100 where the readings are drawn anew (bootstrap)."""
    couples = [math.sqrt(a * b) for a, b in zip(ratios[::2], ratios[1::2], strict=True)]
    draw = random.Random(0)
    again = [draw.choices(couples, k=len(couples)) for _ in range(10_000)]
    found: dict[str, Any] = {"couples": [round(couple, 4) for couple in couples]}
    for name, middle in (("median", statistics.median), ("mean", statistics.geometric_mean)):
        drawn = sorted(map(middle, again))
        found[f"ratio_{name}"] = round(middle(couples), 4)
        found[f"ratio_{name}_95"] = [round(drawn[250], 4), round(drawn[-251], 4)]
    return found


def overhead_table(records: Sequence[Mapping[str, Any]]) -> str:
    head = ("script", "steps", "loop", "watched", "ratio", "first 20", "after", "start", "watched", "lint")
    return table(head, [overhead_row(record) for record in records])


def overhead_row(record: Mapping[str, Any]) -> tuple[str, ...]:
    if "ratio" not in record:
        return (record["name"], *("",) * 8, record.get("left_out") or record["problems"][0])

    def middle(side: str, what: str) -> float:
        return statistics.median(one[what] for one in record[side])

    return (
        record["name"],
        str(sum((record["steps"] or {}).get(kind, 0) for kind in ("train", "explicit"))),
        f"{middle('plain', 'loop'):.2f} s",
        f"{middle('watched', 'loop'):.2f} s",
        said_ratio(record),
        f"{middle('plain', 'early_ms'):.1f} ms x {record['ratio_early']:.2f}",
        f"{middle('plain', 'late_ms'):.1f} ms x {record['ratio_late']:.2f}",
        f"{middle('plain', 'start'):.1f} s",
        f"{middle('watched', 'start'):.1f} s",
        f"{record['lint_seconds'] or 0:.1f} s",
    )


def said_ratio(record: Mapping[str, Any]) -> str:
    if "couples" not in record:
        return f"{record['ratio']:.3f}"
    low, high = record["ratio_median_95"]
    return f"{record['ratio_median']:.3f} ({low:.3f} to {high:.3f})"


# -- the commands --------------------------------------------------------------------------------------------


def one_of(bench: Bench, script: Script, given: argparse.Namespace) -> dict[str, Any]:
    """The record of one script, whatever happens."""
    why = missing(script, lambda name: importlib.util.find_spec(name) is not None, bench.checkouts)
    if why:
        return {"name": script.name, "left_out": why, "problems": []}
    try:
        if given.command == "compare":
            return compare(bench, script)
        if given.side_by_side:
            return side_by_side(bench, script, given.pairs, not given.plain)
        return overhead(bench, script, given.pairs)
    except RuntimeError as error:
        return {**described(script, bench.device), "problems": [str(error)]}


def measured(given: argparse.Namespace) -> int:
    """`compare` or `overhead`: run, write down, show."""
    import torch

    from gpulint import __version__

    device = given.device or ("cuda" if torch.cuda.is_available() else "cpu")
    loops = given.command == "overhead"
    scripts = chosen(given.only, loops)
    options = {"to_end": True} if loops else {}
    options |= {name: json.loads(value) for name, _, value in (item.partition("=") for item in given.verify)}
    head = {
        "hardware": hardware(),
        "gpu": torch.cuda.get_device_name() if device == "cuda" else None,
        "torch": torch.__version__,
        "gpulint": __version__,
        "device": device,
        "verify": options,
    }
    records: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="scripts-") as folder:
        bench = Bench(given.checkouts.resolve(), device, options, Path(folder))
        with ThreadPoolExecutor(given.jobs if not loops else 1) as pool:
            for record in pool.map(one_of, itertools.repeat(bench), scripts, itertools.repeat(given)):
                records.append(record)  # written at once: a machine may be taken away
                given.out.write_text(
                    json.dumps({**head, "scripts": records}, indent=1) + "\n", encoding="utf-8"
                )
                print("; ".join((record["name"], *record["problems"])), file=sys.stderr, flush=True)
    shown = overhead_table(records) if loops else compared_table(records)
    given.out.with_suffix(".md").write_text(shown + "\n", encoding="utf-8")
    print(shown)
    found = [f"{record['name']}: {problem}" for record in records for problem in record.get("problems", ())]
    print(f"\n{len(records)} scripts, {len(found)} problems; written to {given.out}")
    for problem in found:
        print(f"problem: {problem}")
    return 1 if found else 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="repositories, commits, arguments")
    for name in ("compare", "overhead"):
        command = commands.add_parser(name)
        command.add_argument("checkouts", type=Path)
        command.add_argument("out", type=Path, metavar="OUT.json")
        command.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda where there is one")
        command.add_argument(
            "--only", action="append", default=[], metavar="NAME", help="part of a script's name"
        )
        command.add_argument("--verify", action="append", default=[], metavar="NAME=JSON")
        command.add_argument("--jobs", type=int, default=1, help="scripts at the same time (compare only)")
        command.add_argument("--pairs", type=int, default=3, help="plain and watched runs (overhead only)")
        command.add_argument(
            "--side-by-side", action="store_true", help="both of a pair at once (overhead only)"
        )
        command.add_argument(
            "--plain", action="store_true", help="both of a pair plain (with --side-by-side)"
        )
    commands.add_parser("watch").add_argument("order", type=json.loads)
    given = parser.parse_args(arguments)
    if given.command == "list":
        for script in SCRIPTS:
            print(
                "\t".join((script.repository, script.commit, *list(described(script, "cuda").values())[3:]))
            )
        return 0
    return watch(given.order) if given.command == "watch" else measured(given)


if __name__ == "__main__":
    sys.exit(main())
