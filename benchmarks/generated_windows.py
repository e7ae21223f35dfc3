"""Sixty generated training scripts, thirty that leak and thirty that do not, each judged by `gpulint verify`.

    python benchmarks/generated_windows.py            # on the GPU where there is one
    python benchmarks/generated_windows.py --device cpu --only leak-03

They train and evaluate in passes of 1 to 8 batches, 1 to 6 times, with and without grad in the evaluation. What is kept, and what is
only in use, is drawn with a seed, so that the programs are the same wherever they run. Writes
`benchmarks/results/generated-windows-<device>-<date>.json` with the programs' texts and prints a table. Exit status 1: a leak was
called harmless, negligible or refuted, one that three passes show was missed, or a program without a leak was said to have one.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import random
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from _measure import hardware, read_toml, table
from _parts import result_path, write

import gpulint
from gpulint.runtime.parent.verdict import Verification

SEED = 36
SHOWN = 3  # passes, from which on what outlives them must be found


@dataclass(frozen=True)
class Habit:
    """What a program does with what it evaluates. `holder` is part of the name of what keeps the growth of one that leaks. Where
    `grad` says so, graphs may be kept as well; they are dropped by {cut} else."""

    name: str
    keep: str = "pass"
    before: str = ""
    begin: str = "pass"
    end: str = "pass"
    holder: str = ""
    shape: str = ""  # TRIALS, or else either of the others


TEXTS = read_toml("generated_windows.toml")
HABITS = {
    leaks: [Habit(**told) for told in TEXTS[name]] for leaks, name in ((True, "leaks"), (False, "benign"))
}


@dataclass(frozen=True)
class Program:
    """One script, and what was drawn for it."""

    name: str
    leaks: bool
    habit: str
    holder: str
    batches: int
    passes: int
    steps: int
    grad: bool
    shape: str
    text: str


def programs(device: str, seed: int = SEED) -> list[Program]:
    """Thirty of each kind, the same for the same seed."""
    drawn = random.Random(seed)
    made = []
    for leaks, habits in HABITS.items():
        for number, habit in zip(range(30), itertools.cycle(habits), strict=False):
            shape = habit.shape or drawn.choice(("inline", "functions"))
            # Each number of batches and of passes comes, and a leak is mostly given the passes that show it.
            batches, grad = number % 8 + 1, drawn.random() < 0.5
            passes = number % 6 + 1 if number % 3 == 0 or not leaks else drawn.randint(SHOWN, 6)
            steps, optimizer = drawn.randint(6, 10), drawn.choice(("SGD", "Adam"))
            name = f"{'leak' if leaks else 'benign'}-{number:02}"
            text = _text(habit, shape, batches, passes, steps, grad, optimizer, device)
            drawn_so = (batches, passes, steps, grad, shape, text)
            made.append(Program(name, leaks, habit.name, habit.holder, *drawn_so))
    return made


def _text(
    habit: Habit, shape: str, batches: int, passes: int, steps: int, grad: bool, optimizer: str, device: str
) -> str:
    parts = {
        part: getattr(habit, part).format(cut="" if grad else ".detach()")
        for part in ("before", "begin", "keep", "end")
    }
    guard = "torch.enable_grad()" if grad else "torch.no_grad()"
    head = TEXTS["head"].format(device=device, optimizer=optimizer, steps=steps, batches=batches)
    return head + TEXTS[shape].format(guard=guard, passes=passes, **parts)


@dataclass(frozen=True)
class Outcome:
    """What was said of a program: `status` of the exit, `growth` in words by holder, `dismissed` what was said of its holder besides
    growth."""

    program: Program
    status: int
    growth: tuple[str, ...]
    dismissed: tuple[str, ...]
    unsettled: tuple[str, ...]
    end: str
    seconds: float
    gpu: str

    @property
    def problem(self) -> str:
        """What is wrong with it; "" where nothing is."""
        program = self.program
        if self.status not in (0, 1):
            return f"not verified: {self.end}"
        if not program.leaks:
            return "called a leak" if self.status or self.growth else ""
        if self.dismissed:
            return f"called none: {self.dismissed[0]}"
        found = any(f"`{program.holder}" in said for said in self.growth)
        if program.passes >= SHOWN and not (found and self.status):
            return "missed"
        return ""


def run(program: Program, folder: Path, device: str) -> Outcome:
    """Verify it."""
    path = folder / f"{program.name}.py"
    path.write_text(program.text, encoding="utf-8")
    found = gpulint.verify(path, device=device, timeout=300, confidence="low")
    growing = [v for v in found.verdicts if v.status == "confirmed" and v.device]
    growth = [f"{v.text} ({v.holder})" for v in growing]
    growth += [f"{one.rate} ({one.text})" for one in found.unpredicted if one.device > 0]
    return Outcome(
        program,
        found.exit_code,
        tuple(growth),
        tuple(_dismissed(found, program)),
        tuple(one.text for one in found.harmless if one.label != "harmless"),
        found.run.end.message,
        round(found.run.seconds, 1),
        (found.run.ranks[0].environment.device_name or "") if found.run.ranks else "",
    )


def _dismissed(found: Verification, program: Program) -> list[str]:
    """What says of the holder that it is nothing."""
    said = [
        one.text for one in found.harmless if one.label == "harmless" and f"`{program.holder}" in one.text
    ]
    said += [
        f"{v.headline}: {v.text}"
        for v in found.verdicts
        if (v.status == "refuted" or v.negligible)
        and v.code.startswith("GPU1")
        and f"`{program.holder}" in v.message
    ]
    return said if program.holder else []


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto")
    parser.add_argument(
        "--only",
        default="",
        metavar="NAME",
        help="only programs whose names begin so; written only with --out",
    )
    parser.add_argument("--jobs", type=int, default=1, help="programs that run at the same time")
    parser.add_argument("--seed", type=int, default=SEED, help="draw other programs")
    parser.add_argument("--out", type=Path, help="where the JSON goes, instead of benchmarks/results/")
    parser.add_argument("--show", action="store_true", help="print the programs and run none")
    asked = parser.parse_args(arguments)
    chosen = [one for one in programs(asked.device, asked.seed) if one.name.startswith(asked.only)]
    if asked.show:
        for one in chosen:
            print(f"# {one.name}: {one.habit}\n{one.text}")
        return 0
    outcomes = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(asked.jobs) as pool:
        for outcome in pool.map(lambda one: run(one, Path(folder), asked.device), chosen):
            outcomes.append(outcome)
            print(_row(outcome), flush=True)
    wrong = [one for one in outcomes if one.problem]
    print(table(("", "wrong", "of"), _counts(outcomes)))
    if asked.out or not (asked.only or asked.seed != SEED):
        _write(outcomes, asked.seed, asked.out)
    return int(bool(wrong))


def _row(one: Outcome) -> str:
    program = one.program
    shape = f"{program.passes} × {program.batches}, {program.shape}{', grad' if program.grad else ''}"
    said = one.problem or (one.growth or one.unsettled or ("nothing grows",))[0]
    return f"{program.name} {program.habit} ({shape}): status {one.status}, {said[:150]}"


def _counts(outcomes: Sequence[Outcome]) -> list[tuple[str, str, str]]:
    rows = []
    for leaks, name in ((True, "leaking"), (False, "without a leak")):
        kind = [one for one in outcomes if one.program.leaks == leaks]
        rows.append((name, str(sum(bool(one.problem) for one in kind)), str(len(kind))))
    return rows


def _write(outcomes: Sequence[Outcome], seed: int, out: Path | None) -> None:
    names = {one.gpu for one in outcomes if one.gpu}
    host = hardware()["cpu"] in names
    environment = {"device": "cpu" if host else "cuda", "device_name": next(iter(names), "")}
    data: dict[str, object] = {
        "date": datetime.date.today().isoformat(),
        "version": gpulint.__version__,
        "hardware": hardware(),
        "environment": environment,
        "seed": seed,
        "programs": [{**asdict(one), "problem": one.problem} for one in outcomes],
    }
    path = out or result_path("generated-windows", data)
    write(path, data)
    print(f"written to {path}")


if __name__ == "__main__":
    sys.exit(main())
