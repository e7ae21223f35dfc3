"""Forecasts of the workloads in `forecast_workloads/`, written down, and compared with what a GPU really took.

    python benchmarks/forecast.py write OUT.json [--python PATH] [--only NAME ...] [--set first|second|all]
        [--sizes open|sealed|all]
    python benchmarks/forecast.py compare FORECASTS.json TRUTH.json ... [--markdown FILE.md]

`write` needs no GPU and no truth: the forecasts of the sealed workloads and batch sizes are written and committed before
`forecast_truth.py` measures them. The second set is sealed as a whole. Forecasts that are in OUT.json already are kept. Figures are bytes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forecast_truth import OPEN, SEALED, SECOND, script

from gpulint.forecasting.api import forecast
from gpulint.forecasting.recorder import ForecastError
from gpulint.forecasting.result import Figure

FIGURES = ("allocated", "reserved", "process")
GOALS = {"allocated": (0.02, 0.06), "reserved": (0.05, None), "process": (0.05, None)}


def write(args: argparse.Namespace) -> None:
    """Forecast what is not in the file yet, one after the other."""
    out = Path(args.out)
    found = json.loads(out.read_text()) if out.exists() else {"card": args.card, "runs": {}}
    for name, batch in wanted(args.set, args.sizes):
        key = f"{name}-{batch}"
        if (args.only and name not in args.only) or key in found["runs"]:
            continue
        begin = time.monotonic()
        try:
            told = forecast(script(name), ("--batch", str(batch)), card=args.card, python=args.python)
        except ForecastError as error:
            print(key, error, file=sys.stderr, flush=True)
            continue
        found["torch"] = told.torch
        found["runs"][key] = {
            **{figure: numbers(getattr(told, figure)) for figure in FIGURES},
            "fits": told.fits,
            "kinds": dict(told.kinds),
            "doubts": sorted({doubt.code for doubt in told.doubts}),
            "seconds": round(time.monotonic() - begin, 1),
            "sealed": batch in SEALED.get(name, ()) or name in SECOND,
        }
        out.write_text(json.dumps(found, indent=1) + "\n")
        print(
            key,
            *(f"{figure} {getattr(told, figure).value / 2**20:.0f} MiB" for figure in FIGURES),
            flush=True,
        )


def wanted(set_of: str, sizes: str) -> Iterator[tuple[str, int]]:
    for number, kind, table in (
        ("first", "open", OPEN),
        ("first", "sealed", SEALED),
        ("second", "sealed", SECOND),
    ):
        if set_of in (number, "all") and sizes in (kind, "all"):
            yield from ((name, batch) for name, batches in table.items() for batch in batches)


def numbers(figure: Figure) -> list[int]:
    return [figure.value, figure.low, figure.high]


@dataclass(frozen=True, slots=True)
class Row:
    """One workload at one batch size: the truth, and what was forecast, by figure."""

    key: str
    sealed: bool
    truth: dict[str, int]
    told: dict[str, list[int]]
    seconds: float

    def error(self, figure: str) -> float:
        return self.told[figure][0] / self.truth[figure] - 1

    def within(self, figure: str) -> bool:
        _, low, high = self.told[figure]
        return low <= self.truth[figure] <= high


def rows(forecasts: dict[str, Any], truths: Sequence[dict[str, Any]]) -> list[Row]:
    measured = {
        key: run
        for truth in truths
        for key, run in truth["runs"].items()
        if not run.get("error") and not run.get("limit")
    }
    return [
        Row(key, told["sealed"], truth_of(measured[key]), told, told["seconds"])
        for key, told in forecasts["runs"].items()
        if key in measured
    ]


def truth_of(run: dict[str, Any]) -> dict[str, int]:
    """The process's total, where it is known: reserved at most, and what the card held besides torch's memory at the end."""
    found = {"allocated": run["peak_allocated"], "reserved": run["peak_reserved"]}
    if "used_at_end" in run:
        found["process"] = run["peak_reserved"] + run["used_at_end"] - run["reserved_at_end"]
    return found


def table(found: Sequence[Row]) -> list[str]:
    lines = [
        "| Workload-batch | | " + " | ".join(f"{figure}, truth | forecast | error" for figure in FIGURES) + " | s |",
        "|---|---|" + "---:|" * (3 * len(FIGURES) + 1),
    ]  # fmt: skip
    for row in found:
        cells = [
            f"{row.truth[figure] / 2**20:.0f} | {row.told[figure][0] / 2**20:.0f} | "
            f"{row.error(figure):+.2%}{'' if row.within(figure) else ' !'}"
            if figure in row.truth
            else f" | {row.told[figure][0] / 2**20:.0f} | "
            for figure in FIGURES
        ]
        lines.append(
            f"| {row.key} | {'sealed' if row.sealed else 'open'} | {' | '.join(cells)} | {row.seconds:.0f} |"
        )
    return lines


def summary(found: Sequence[Row], title: str) -> list[str]:
    """Mean and worst error of each figure, how often it was too low, and how often the truth lay within the interval."""
    if not found:
        return []
    lines = [f"{title}: {len(found)} runs"]
    for figure in FIGURES:
        known = [row for row in found if figure in row.truth]
        errors = [row.error(figure) for row in known]
        sizes = [abs(error) for error in errors]
        mean, worst = GOALS[figure]
        goal = f"goal {mean:.0%}" + (f", worst {worst:.0%}" if worst else "")
        lines.append(
            f"  {figure:<9} mean {statistics.mean(sizes):.2%}, median {statistics.median(sizes):.2%}, "
            f"worst {max(errors, key=abs):+.2%} ({goal}); too low in {sum(error < 0 for error in errors)}; "
            f"within the interval {sum(row.within(figure) for row in known)} of {len(known)}"
        )
    return lines


def compare(args: argparse.Namespace) -> None:
    truths = [json.loads(Path(path).read_text()) for path in args.truths]
    found = rows(json.loads(Path(args.forecasts).read_text()), truths)
    lines = [*table(found), ""]
    for title, some in (
        ("all", found),
        ("open", [row for row in found if not row.sealed]),
        ("sealed", [row for row in found if row.sealed]),
        ("sealed workloads", [row for row in found if row.key.rsplit("-", 1)[0] not in OPEN]),
        ("second set", [row for row in found if row.key.rsplit("-", 1)[0] in SECOND]),
    ):
        lines += summary(some, title)
    print("\n".join(lines))
    if args.markdown:
        Path(args.markdown).write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    writing = commands.add_parser("write")
    writing.add_argument("out")
    writing.add_argument("--python", default=sys.executable)
    writing.add_argument("--card", default="h200")
    writing.add_argument("--only", nargs="*")
    writing.add_argument("--set", choices=("first", "second", "all"), default="first")
    writing.add_argument("--sizes", choices=("open", "sealed", "all"), default="all")
    writing.set_defaults(do=write)
    comparing = commands.add_parser("compare")
    comparing.add_argument("forecasts")
    comparing.add_argument("truths", nargs="+")
    comparing.add_argument("--markdown")
    comparing.set_defaults(do=compare)
    args = parser.parse_args()
    args.do(args)


if __name__ == "__main__":
    main()
