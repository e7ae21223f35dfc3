"""Measures what every rule's habit costs, and what its advice saves.

    python benchmarks/evidence.py                        # on the GPU: minutes
    python benchmarks/evidence.py GPU302 --merge FILE    # only these rules, put into earlier results
    python benchmarks/evidence.py --missing --merge FILE # only what FILE has no results of
    python benchmarks/evidence.py --device cpu --quick   # the same programs, tiny, on the CPU probe

Each variant of a case runs several times, alternating with the others; the medians are written to
`benchmarks/results/evidence-<gpu>-<date>.json` and, as a table, to the `.md` beside it. Allocator settings
(GPU601, GPU602, GPU604) get a process each. On the CPU, sizes are those of live storages as the caching allocator would round
them, and times include the probe.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from _measure import HERE, hardware, result_path, table, write
from evidence_cases import PROCESS_CASES, all_cases
from evidence_cases.processes import ProcessCase
from evidence_cases.setup import FULL, QUICK, Case, Maker, Setup, Size

from gpulint.runtime.observing.hostmemory import HostMemory
from gpulint.runtime.probes.frames import Frames
from gpulint.runtime.record.drift import theil_sen
from gpulint.units import format_bytes

LENGTHS = 120  # steps of the trainings on varying lengths


@dataclass(frozen=True)
class Figures:
    """One run of one variant; bytes, and milliseconds per step. `notes` are the case's own figures."""

    drift: float
    host_drift: float | None
    peak: int
    reserved: int | None
    ms: float
    notes: dict[str, float]


class Meter:
    """Reads the device: the caching allocator's figures, or the CPU probe's."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._probe: Any = None
        if device == "cpu":
            from gpulint.runtime.probes.host import HostProbe

            self._probe = HostProbe(Frames(str(HERE)))
            self._probe.start()

    def settle(self) -> None:
        """Begin from nothing."""
        gc.collect()
        if self._probe is None:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()

    def wait(self) -> None:
        if self._probe is None:
            torch.cuda.synchronize()

    def allocated(self) -> int:
        return torch.cuda.memory_allocated() if self._probe is None else int(self._probe.allocated())

    def reset(self) -> None:
        if self._probe is None:
            torch.cuda.reset_peak_memory_stats()
        else:
            self._probe.begin_peak("line")

    def peak(self) -> int:
        return torch.cuda.max_memory_allocated() if self._probe is None else int(self._probe.peak("line"))

    def reserved(self) -> int | None:
        return torch.cuda.max_memory_reserved() if self._probe is None else None


def measure(maker: Maker, meter: Meter, size: Size, steps: int, warmup: int) -> Figures:
    """Run one variant. `drift` is the Theil-Sen slope of `allocated` after warm-up."""
    meter.settle()
    torch.manual_seed(0)
    base = meter.allocated()
    setup = Setup(size, meter.device, lambda: meter.allocated() - base)
    step = maker(setup)
    for _ in range(warmup):
        step()
    meter.wait()
    gc.collect()
    setup.notes.clear()
    meter.reset()
    host = HostMemory()
    levels, heaps, times = [], [], []
    for _ in range(steps):
        begin = time.perf_counter()
        step()
        meter.wait()
        times.append(1000 * (time.perf_counter() - begin))
        levels.append(meter.allocated())
        heaps.append(host.heap())
    known = [heap for heap in heaps if heap is not None]
    figures = Figures(
        drift=theil_sen(levels),
        host_drift=theil_sen(known) if len(known) == steps else None,
        peak=meter.peak() - base,
        reserved=meter.reserved(),
        ms=statistics.median(times),
        notes={name: statistics.median(values) for name, values in setup.notes.items()},
    )
    del step, setup
    meter.settle()
    return figures


def middle(runs: Sequence[Figures]) -> dict[str, Any]:
    """The median of every figure over the runs."""

    def of(values: Iterable[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return statistics.median(known) if known else None

    names = ("drift", "host_drift", "peak", "reserved", "ms")
    figures = {name: of(getattr(run, name) for run in runs) for name in names}
    notes = {name: of(run.notes[name] for run in runs) for name in runs[0].notes}
    return {**figures, "notes": notes, "runs": [asdict(run) for run in runs]}


def measure_case(case: Case, meter: Meter, size: Size, steps: int, runs: int) -> dict[str, Any]:
    """The figures of every variant of a case, measured in alternation."""
    found: dict[str, list[Figures]] = {name: [] for name in case.variants}
    for _ in range(runs):
        for name, maker in case.variants.items():
            found[name].append(measure(maker, meter, size, steps, case.warmup))
    return {name: middle(figures) for name, figures in found.items()}


# -- results -------------------------------------------------------------------------------------------------


def environment(device: str) -> dict[str, Any]:
    from gpulint.runtime.observing import machine

    probe = "cuda-allocator" if device == "cuda" else "host-storages"
    if device == "cuda":
        torch.cuda.init()  # what has not begun is not asked for its name
    return machine.environment(probe)


def shown(value: float | None) -> str:
    return "" if value is None else format_bytes(round(value))


def note_text(name: str, value: float) -> str:
    """`allocated 1.50 GiB`, or for a name with a unit of its own `step 24.70 ms`, `tried 18 settings`."""
    what, _, unit = name.rpartition(", ")
    if not what:
        return f"{name} {shown(value)}"
    return f"{what} {value:.2f} ms" if unit == "ms" else f"{what} {value:.0f} {unit}"


def rows(cases: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """A row for each variant."""
    found = []
    for case in cases:
        for number, (name, v) in enumerate(case["variants"].items()):
            head = (case["code"], case["title"]) if number == 0 else ("", "")
            if "error" in v:
                found.append((*head, name, *[""] * 5, f"failed: {v['error']}"))
                continue
            notes = ", ".join(note_text(key, value) for key, value in (v.get("notes") or {}).items())
            figures = tuple(shown(v.get(key)) for key in ("drift", "host_drift", "peak", "reserved"))
            found.append((*head, name, *figures, f"{v['ms']:.2f}" if "ms" in v else "", notes))
    return found


def merged(earlier: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """`earlier` with the cases of `new`, which replace those of the same code and title.

    Raises ValueError where the two cannot stand in one table: another GPU, torch or size.
    """
    for keys in (("environment", "device_name"), ("environment", "torch"), ("size",)):
        old, now = earlier, new
        for key in keys:
            old, now = (old or {}).get(key), (now or {}).get(key)  # type: ignore[assignment]
        if old != now:
            raise ValueError(f"{' '.join(keys)} was {old!r} and is {now!r}")
    how = {key: earlier[key] for key in ("runs", "steps") if key in earlier}
    how["date"] = earlier["hardware"]["date"]
    cases = {(case["code"], case["title"]): {**how, **case} for case in earlier["cases"]}
    cases |= {(case["code"], case["title"]): case for case in new["cases"]}
    kept = {key: value for key, value in earlier.items() if key not in ("runs", "steps")}
    return {**kept, "cases": sorted(cases.values(), key=lambda case: str(case["code"]))}


HEAD = ("rule", "case", "variant", "drift a step", "host drift", "peak", "reserved", "ms a step", "besides")


def save(path: Path, earlier: dict[str, Any] | None, result: dict[str, Any]) -> None:
    """Write the JSON and the table beside it. Called after every case: a run that is cut short loses one."""
    whole = result if earlier is None else merged(earlier, result)
    write(path, whole)
    path.with_suffix(".md").write_text(table(HEAD, rows(whole["cases"])) + "\n", encoding="utf-8")


def arguments_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("codes", nargs="*", help="only these rules")
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto")
    parser.add_argument("--quick", action="store_true", help="tiny models, one run of each")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--out", type=Path, help="where the JSON goes, instead of benchmarks/results/")
    parser.add_argument("--merge", type=Path, help="put the new results into this JSON, and its .md")
    parser.add_argument(
        "--missing", action="store_true", help="only cases that the file of --merge does not have"
    )
    given = parser.parse_args(arguments)
    if given.missing and given.merge is None:
        parser.error("--missing needs --merge")
    return given


def main(arguments: Sequence[str] | None = None) -> int:
    given = arguments_of(arguments)
    device = given.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    size = QUICK if given.quick or device == "cpu" else FULL
    earlier = json.loads(given.merge.read_text(encoding="utf-8")) if given.merge else None
    measured = earlier["cases"] if earlier and given.missing else []
    done = {(case["code"], case["title"]) for case in measured}
    meter, begin = Meter(device), time.perf_counter()
    result: dict[str, Any] = {
        "hardware": hardware(),
        "environment": {"device": device, **environment(device)},
        "size": asdict(size),
        "cases": [],
    }
    path = given.out or given.merge or result_path("evidence", result)
    save(path, earlier, result)  # before minutes are spent on what cannot be merged or written
    every: list[Case | ProcessCase] = [*all_cases(), *PROCESS_CASES]
    for case in sorted(every, key=lambda case: case.code):
        if (given.codes and case.code not in given.codes) or (case.code, case.title) in done:
            continue
        if isinstance(case, ProcessCase):
            meter.settle()
            runs, steps = 1, 8 if given.quick else LENGTHS
            variants = case.measure(device, size, steps)
        else:
            runs, steps = 1 if given.quick else given.runs, given.steps
            variants = measure_case(case, meter, size, steps, runs)
        how = {"date": result["hardware"]["date"], "runs": runs, "steps": steps}
        result["cases"].append({**how, "code": case.code, "title": case.title, "variants": variants})
        save(path, earlier, result)
        print(f"{time.perf_counter() - begin:6.1f} s  {case.code} {case.title}", file=sys.stderr, flush=True)
    print(table(HEAD, rows(result["cases"])))
    print(f"\nwritten to {path} in {time.perf_counter() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
