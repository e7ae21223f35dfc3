"""How many of the analysis's decisions the quick tests would miss.

Every condition in the analysis, and in the rules, is there because some program needs it, and a test
should say which. This takes decisions at random, spoils each of them alone and asks the labelled programs and the rules'
pages, all of `make quick` that goes through the analysis, until one gives another answer:

- a condition of an `if`, a `while`, an `a if b else c` or a comprehension becomes `False`;
- the last term of an `and` or an `or` is dropped;
- `return True` becomes `return False`, and the other way round.

Nothing is written for that: the modules are compiled with a switch at each decision. A first round, in which no switch
is turned, notes by which programs a decision could matter at all, and only these are run with it spoilt. What comes of
it is one of

- `answers`: a finding changes, its doubts, its severity or its edits, of which the labels of the cases hold the most;
- `crash`, `hang`: the analysis breaks, or takes ten times as long;
- `types`: no program notices, but mypy refuses the spoilt module, as `make types` would: the condition tells types apart;
- `silent`: some programs come by where it decides, and give the same answers;
- `never`: in no program does it decide anything.

The last two are missed. They need a case under `tests/cases`, or can go. Some of them only save time: these may stay, and
make the percentage a little worse than it is.

    python benchmarks/decisions.py                        150 decisions
    python benchmarks/decisions.py 20 --seed 7            others, and fewer
    python benchmarks/decisions.py --only loops.py        of files with this in their path

The first round takes about a minute of one core, a decision up to three seconds.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from _switches import ROOT, SWITCHES, Decision, decisions, instrument, sources

MOST_PROGRAMS = 150  # that are run for one decision: half of them the quickest, the others at random
SLOWER = 10  # times as long as without a change, and half a second: then it hangs
MISSED = ("silent", "never")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a spoilt decision, the program that noticed, and by how many it could matter."""

    decision: Decision
    what: str
    by: str
    programs: int


# -- programs --------------------------------------------------------------------------------------------------

Told = tuple[object, ...]
Program = Callable[[], Told]


def programs() -> dict[str, Program]:
    """What the quick tests ask of the analysis, by name: the cases and fixtures, and the pages of the rules."""
    import test_cases
    from gpulint.rules import all_rules

    found: dict[str, Program] = {}
    for case in test_cases.all_cases():
        found[case.name] = lambda case=case: tuple(test_cases.findings(case))  # type: ignore[misc]
    for rule in all_rules():
        found[rule.code] = lambda rule=rule: _page(rule)  # type: ignore[misc]
    return found


def _page(rule: Any) -> Told:
    """What is found in a rule's example and in its remedy, and whether the fix leads from one to the other."""
    import test_rules

    from gpulint.fix.fixing import fix_text
    from gpulint.lint.linter import lint_text

    page = test_rules.page(rule)
    with TemporaryDirectory() as name:
        folder = Path(name)
        told: list[object] = [
            [(one.code, one.line) for one in test_rules.found_in(page.code(part), folder)]
            for part in ("Use instead", "Example")
        ]
        path = test_rules.write(page.code("Example"), folder)
        text = path.read_text(encoding="utf-8")
        fixed = fix_text(text, lambda now: lint_text(now, str(path), test_rules.RULES), unsafe=True)
        return (*told, fixed.text, str(fixed.error))


class _Hangs(BaseException):
    pass


def _alarm(*_: object) -> None:
    raise _Hangs


def ask(program: Program, spoilt: int | None, seconds: float) -> Told:
    """What a program tells with a decision spoilt; `crash` or `hang` alone where it tells nothing."""
    import test_cases

    from gpulint.source.importing import import_roots, project_root

    test_cases.FOUND.clear()
    import_roots.cache_clear()
    project_root.cache_clear()
    SWITCHES.active = spoilt
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        return program()
    except _Hangs:
        return ("hang",)
    except Exception:
        return ("crash",)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        SWITCHES.active = None


class Examination:
    """All programs, what each tells with nothing spoilt, how long that takes, and which decide what."""

    def __init__(self, every: list[Decision]) -> None:
        self.every = every
        self.programs = programs()
        self.told: dict[str, Told] = {}
        self.seconds: dict[str, float] = {}
        self.deciding: defaultdict[int, list[str]] = defaultdict(list)
        signal.signal(signal.SIGVTALRM, _alarm)
        for program in list(self.programs.values())[:20]:
            ask(program, None, 60)  # what is imported on the way is imported once
        for name, program in self.programs.items():
            SWITCHES.decisive.clear()
            began = time.process_time()
            self.told[name] = ask(program, None, 60)
            self.seconds[name] = time.process_time() - began
            if self.told[name] in (("crash",), ("hang",)):
                raise SystemExit(f"{name}: {self.told[name][0]}, before anything is changed")
            for number in SWITCHES.decisive:
                self.deciding[number].append(name)

    def examine(self, number: int) -> Outcome:
        names = sorted(self.deciding[number], key=self.seconds.__getitem__)
        chosen = names
        if len(names) > MOST_PROGRAMS:
            half = MOST_PROGRAMS // 2
            chosen = names[:half] + random.Random(number).sample(names[half:], half)
        for name in chosen:
            told = ask(self.programs[name], number, SLOWER * self.seconds[name] + 0.5)
            if told != self.told[name]:
                what = str(told[0]) if told in (("crash",), ("hang",)) else "answers"
                return Outcome(self.every[number], what, name, len(names))
        return Outcome(self.every[number], "silent" if names else "never", "", len(names))


# -- types -----------------------------------------------------------------------------------------------------


def refused_by_types(missed: list[Decision]) -> set[Decision]:
    """Those whose change mypy refuses. One of each file is spoilt at a time, and found by the file of an error."""
    by_file: defaultdict[str, list[Decision]] = defaultdict(list)
    for decision in missed:
        by_file[decision.file].append(decision)
    refused: set[Decision] = set()
    with TemporaryDirectory(prefix="decisions-") as name:
        tree = Path(name)
        shutil.copytree(ROOT / "gpulint", tree / "gpulint")
        if _wrong_types(tree):
            raise SystemExit("mypy finds errors before anything is changed")
        for turn in range(max(map(len, by_file.values()), default=0)):
            chosen = [found[turn] for found in by_file.values() if len(found) > turn]
            for one in chosen:
                (tree / _in_package(one.file)).write_bytes(one.spoil((ROOT / one.file).read_bytes()))
            wrong = _wrong_types(tree)
            refused |= {one for one in chosen if _in_package(one.file) in wrong}
            for one in chosen:
                (tree / _in_package(one.file)).write_bytes((ROOT / one.file).read_bytes())
    return refused


def _in_package(file: str) -> str:
    return f"gpulint/{file}" if file.startswith("rules/") else file


def _wrong_types(tree: Path) -> set[str]:
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]
    done = subprocess.run(
        [*command, "-p", "gpulint.analysis", "-p", "gpulint.rules"], cwd=tree, capture_output=True, text=True
    )
    return {found[1] for found in re.finditer(r"^(\S+?):\d+: error:", done.stdout, re.MULTILINE)}


# -- results ---------------------------------------------------------------------------------------------------


def _digest(root: Path) -> str:
    summed = hashlib.sha256()
    for path in sources(root):
        summed.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return summed.hexdigest()[:16]


def results(outcomes: list[Outcome], every: int, asked: int, seed: int) -> dict[str, Any]:
    counts = Counter(outcome.what for outcome in outcomes)
    noticed = sum(number for what, number in counts.items() if what not in (*MISSED, "types"))
    return {
        "what": (__doc__ or "").split("\n")[0],
        "analysis": _digest(ROOT),
        "programs": asked,
        "decisions in all": every,
        "seed": seed,
        "examined": len(outcomes),
        "noticed by make quick": noticed,
        "percent": percent(noticed, len(outcomes)),
        "told by types besides": counts["types"],
        "percent with types": percent(noticed + counts["types"], len(outcomes)),
        "outcomes": dict(sorted(counts.items())),
        "decisions": [
            {**asdict(outcome.decision), "what": outcome.what, "by": outcome.by, "programs": outcome.programs}
            for outcome in outcomes
        ],
    }


def percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0


_EXAMINATION: Examination


def _examine(number: int) -> Outcome:
    return _EXAMINATION.examine(number)


def main() -> int:
    global _EXAMINATION
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("number", nargs="?", type=int, default=150, help="of decisions (150)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="at a time (2)")
    parser.add_argument("--only", default="", metavar="TEXT", help="files with this in their path")
    parser.add_argument(
        "--no-types", action="store_true", help="leave mypy out: what it tells counts as missed"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "build/decisions.json", metavar="FILE")
    given = parser.parse_args()

    every = decisions(ROOT)
    instrument(every)
    numbers = [number for number, decision in enumerate(every) if given.only in decision.file]
    random.Random(given.seed).shuffle(numbers)
    chosen = numbers[: given.number]  # a larger number examines these and more
    _EXAMINATION = Examination(every)
    print(f"{len(chosen)} of {len(numbers)} decisions, seed {given.seed}", flush=True)
    with multiprocessing.get_context("fork").Pool(given.jobs) as pool:
        outcomes = pool.map(_examine, chosen, chunksize=5)
    if not given.no_types:
        refused = refused_by_types([one.decision for one in outcomes if one.what in MISSED])
        outcomes = [replace(one, what="types") if one.decision in refused else one for one in outcomes]
    data = results(outcomes, len(every), len(_EXAMINATION.programs), given.seed)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for outcome in outcomes:
        if outcome.what in MISSED:
            print(f"  {outcome.what} ({outcome.programs}): {outcome.decision}")
    print(
        f"{data['noticed by make quick']} of {len(outcomes)} noticed ({data['percent']} %)", data["outcomes"]
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
