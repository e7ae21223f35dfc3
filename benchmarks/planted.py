"""Leaks planted in public training scripts: does the verifier find each at the window in which it grows, and name its holder?

    python benchmarks/planted.py CHECKOUTS OUT.json [--device cpu|cuda] [--jobs 2] [--only NAME]

Ten scripts that were not used while the verifier was written, each four times at default options: as it is, and with one
leak of three. The first keeps something in each *step*, the second in each *pass* (an evaluation, an epoch, a report
every so many steps), the third keeps the network of each *trial*, in a sweep that runs the script several times. A leak is
found where the exit status is 1 and what the report says to grow has the planted name. The scripts as they are must end with 0.

CHECKOUTS has a folder `owner+name` for each repository. Scripts run in fresh copies with synthetic data and stand-ins, as in
`public_scripts.py`.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from _measure import about, documented, table, write
from _scripts import Script
from _scripts import table as entries
from public_scripts import Bench, described

HOLDERS = {"none": "", "step": "kept_steps", "pass": "kept_passes", "trial": "kept_trials"}
TRIALS = 4
SWEEP = "sweep.py"
# Each trial runs the whole script again; what it trained goes into a list of a module that outlives it.
_SWEEP = """import runpy
import sys

for trial in range({trials}):
    sys.argv = ["{script}", *{arguments}]
    runpy.run_path("{script}", run_name="__main__")
"""


@dataclass(frozen=True, slots=True)
class Planted(Script):
    """A script with text edits that make it small, and the leak of this copy. `original` is the script that a sweep runs.
    A plant puts after the line `after` of `file` the statement `keep`, with its indentation: a list grows."""

    edits: tuple[Sequence[str], ...] = ()  # file, text, other text
    plants: tuple[Sequence[str], ...] = ()  # file, after, keep: for a step, a pass, a trial
    leak: str = "none"
    original: str = ""

    def planted(self, leak: str) -> Planted:
        """The copy with this leak: none, step, pass or trial."""
        script = SWEEP if leak == "trial" else self.script
        return replace(self, leak=leak, script=script, original=self.script, name=f"{self.name} {leak}")

    @property
    def holder(self) -> str:
        """What the report must name."""
        return HOLDERS[self.leak]

    def command(self, device: str) -> tuple[str, ...]:
        """A sweep gives the script its arguments itself."""
        return () if self.leak == "trial" else Script.command(self, device)

    def prepare(self, checkouts: Path, copy: Path) -> Path:
        """A fresh copy, made small, with its leak."""
        home = Script.prepare(replace(self, script=self.original), checkouts, copy)
        for file, text, other in self.edits:
            _edit(home / file, text, other)
        if self.leak == "none":
            return home
        file, after, keep = self.plants[("step", "pass", "trial").index(self.leak)]
        _edit(home / file, f"{after}\n", f"{after}\n{keep}\n")
        (home / "kept.py").write_text(f"{self.holder} = []\n", encoding="utf-8")
        _head(home / file, f"from kept import {self.holder}\n")
        if self.leak == "trial":
            text = _SWEEP.format(trials=TRIALS, script=self.original, arguments=list(self.arguments))
            (home / SWEEP).write_text(text, encoding="utf-8")
        return home


def _edit(file: Path, text: str, other: str) -> None:
    """Put `other` in the place of `text`."""
    source = file.read_text(encoding="utf-8")
    assert text in source, f"{file.name} has no {text!r}"
    file.write_text(source.replace(text, other), encoding="utf-8")


def _head(file: Path, line: str) -> None:
    """A line before the first import that is not of `__future__`."""
    text = file.read_text(encoding="utf-8")
    first = re.search(r"^(?:import |from (?!__future__))", text, re.MULTILINE)
    assert first is not None, f"{file.name} imports nothing"
    file.write_text(text[: first.start()] + line + text[first.start() :], encoding="utf-8")


SCRIPTS = tuple(Planted(**told) for told in entries("planted"))


# -- judging -------------------------------------------------------------------------------------------------


def one(bench: Bench, script: Planted) -> dict[str, Any]:
    """One copy under the verifier, beside the plain run where nothing is planted, and what is wrong with it."""
    record: dict[str, Any] = {**described(script, bench.device), "leak": script.leak}
    if script.leak == "none":
        plain = bench.run(script, watch=False)
        if plain.status:
            return {**record, "problem": f"fails without gpulint: {plain.errors[-200:]}"}
    watched = bench.run(script, watch=True)
    assert watched.watched is not None
    record["watched"] = {**watched.watched, "wall": round(watched.seconds, 2)}
    return {**record, "problem": _problem(script, watched.watched)}


def _problem(script: Planted, told: Mapping[str, Any]) -> str:
    status, grows = told["exit_code"], _grows(told)
    if script.leak == "none":
        return "" if status == 0 else f"status {status}: {grows or told['message']}"
    if status != 1:
        return f"status {status}: {told['message']}"
    return "" if script.holder in grows else f"the holder is not named: {grows}"


def _grows(told: Mapping[str, Any]) -> str:
    confirmed = [v["text"] for v in told["verdicts"] if v["status"] == "confirmed"]
    return "; ".join((*confirmed, *(u["text"] for u in told["unpredicted"])))


def shown(records: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (r["name"], str(r.get("watched", {}).get("exit_code", "")), r["problem"] or "as it should be")
        for r in records
    ]
    return table(("script and leak", "status", "what came of it"), rows)


def main() -> int:
    parser = documented(__doc__)
    parser.add_argument("checkouts", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    wanted = [s.planted(leak) for s in SCRIPTS for leak in HOLDERS]
    wanted = [script for script in wanted if options.only in script.name]
    records: list[dict[str, Any]] = []
    head = about(options.device)
    with tempfile.TemporaryDirectory(prefix="planted-") as folder, ThreadPoolExecutor(options.jobs) as pool:
        bench = Bench(options.checkouts.resolve(), options.device, Path(folder))
        for record in pool.map(partial(one, bench), wanted):
            records.append(record)  # written at once: a machine may be taken away
            print(f"{record['name']}: {record['problem'] or 'as it should be'}", flush=True)
            write(options.out, {**head, **counted(records), "scripts": records})
    counts = counted(records)
    print(shown(records))
    print(
        f"{counts['found']} of {counts['planted']} planted leaks found with their holder; "
        f"{counts['not_clean']} of the scripts as they are not clean"
    )
    return 0 if counts["found"] == counts["planted"] and not counts["not_clean"] else 1


def counted(records: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many leaks were planted and found, and how many scripts without one did not come out clean."""
    leaks = [r for r in records if r["leak"] != "none"]
    return {
        "planted": len(leaks),
        "found": sum(not r["problem"] for r in leaks),
        "not_clean": sum(bool(r["problem"]) for r in records if r["leak"] == "none"),
    }


if __name__ == "__main__":
    sys.exit(main())
