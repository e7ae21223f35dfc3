"""The exam: small training programs, each line labelled with what a perfect tool says about it.

Labels stand at the end of a line, as comments::

    total += loss  # expect: GPU101            must be flagged
    out = net(x)  # expect: GPU201, GPU103     both must be flagged
    meter.update(loss)  # expect: GPU101|GPU104    one of the two, or both
    cleanup()  # expect: GPU501@a              one of the lines that carry the mark `@a`, or several
    del out  # maybe: GPU401                   either answer is accepted
    empty_cache()  # note: GPU501              must be flagged as a note, which fails no run
    out = net(x)  # low: GPU201                flagged with low confidence: quiet unless that is asked for

A case is `cases/QUESTION/CODE_bug_NAME.py` or `cases/QUESTION/CODE_ok_NAME.py`: the folder is the question that the
analysis must answer right (`QUESTIONS` says them, docs/architecture.md what they are for), the code is that of the rule which then has its say. Programs that
are about no single question lie in a folder of their kind (`KINDS`) and have no code in their name. A `bug_` file has
at least one `expect`, `note` or `low` of its rule, an `ok_` file no `expect` or `note`.

A case of several files is one file here, in which `# file: NAME` heads each of them, as in the examples of the rules;
what stands before the first says what the case is about. The files are written into a folder of their own and linted
there as a project, and each may have labels.

What gpulint is known to get wrong in a case stands in `cases/open.txt`, line by line; a case fails where it gets anything
else wrong, and where it no longer gets wrong what stands there.

`python tests/test_cases.py --open` prints what belongs into `cases/open.txt`: each miss and alarm that there is.
"""

import ast
import io
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from gpulint.rules import all_rules

from gpulint.answers import Question
from gpulint.findings import Confidence, Finding, Severity
from gpulint.lint.linter import lint_text
from gpulint.rule import RuleSet

CASES = Path(__file__).parent / "cases"
OPEN = CASES / "open.txt"  # what is known to be missed, doubted without need, or told falsely

# What a case in the folder of this name asks.
QUESTIONS = {
    "tensor": "Is this value a tensor, made by a network or by torch?",
    "grad": "Is grad enabled where this runs?",
    "graph": "Does the value carry an autograd graph, or was it cut off?",
    "backward": "Does a backward go through the graph, and when?",
    "outlives": "What holds the value, and does it live longer than its iteration?",
    "repeats": "Does this happen again with every batch, or a few times at most?",
    "device": "Is it on the GPU, or on the host?",
    "size": "Is it large enough to matter?",
    "trained": "Does somebody train this network, or is it frozen?",
    "reads": "What does whoever gets the result do with it?",
    "reached": "Who runs this code: a program, a caller elsewhere, a test, nobody?",
    "meant": "Is it a mistake, or what the author wants?",
}
KINDS = ("lookalikes", "mixed", "frameworks")

_LABEL = re.compile(r"#\s*(expect|note|maybe|low):\s*([A-Z0-9|@a-z, ]+)")
_CODE = re.compile(r"(GPU\d{3}(?:\|GPU\d{3})*)(?:@([a-z]))?$")
_NAME = re.compile(r"(?:(GPU\d{3})_)?(bug|ok)_\w+$")
_FILE = re.compile(r"^# file: (\S+)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Demand:
    """At least one of `places` must be flagged with one of `codes`."""

    places: tuple[int, ...]
    codes: tuple[str, ...]

    def met(self, found: set[tuple[int, str]]) -> bool:
        return any((line, code) in found for line in self.places for code in self.codes)


@dataclass(frozen=True, slots=True)
class Case:
    """A labelled program. Lines are those of the case's file where a statement begins."""

    path: Path
    text: str
    demands: tuple[Demand, ...]
    allowed: frozenset[tuple[int, str]]
    doubtful: frozenset[tuple[int, str]]
    notes: frozenset[tuple[int, str]]
    starts: dict[int, int]

    @property
    def name(self) -> str:
        return self.path.relative_to(CASES).as_posix()

    @property
    def question(self) -> str:
        """Its folder: a question, or a kind of program."""
        return self.path.parent.name

    @property
    def code(self) -> str | None:
        """The rule that it is about; None where it is of a kind of program."""
        found = _NAME.match(self.path.stem)
        return found and found[1]

    @property
    def kind(self) -> str:
        """`bug` or `ok`; empty where the file is named otherwise."""
        found = _NAME.match(self.path.stem)
        return found[2] if found else ""

    @property
    def files(self) -> dict[str, str]:
        """The texts of a case of several files by name, each at the lines where it stands; of one file, nothing."""
        heads = list(_FILE.finditer(self.text))
        bounds = pairwise([*(head.end() for head in heads), len(self.text)])
        return {
            head[1]: "\n" * self.text.count("\n", 0, start) + _FILE.sub("", self.text[start:end])
            for head, (start, end) in zip(heads, bounds, strict=True)
        }


def statement_starts(tree: ast.Module) -> dict[int, int]:
    """Each line of a statement (of a compound statement: of its header) to the line where it begins."""
    starts: dict[int, int] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt):
            continue
        body = getattr(node, "body", None)
        last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
        starts.update((line, node.lineno) for line in range(node.lineno, last + 1))
    return starts


def labels(text: str) -> Iterable[tuple[int, str, str]]:
    """(line, "expect", "note", "maybe" or "low", label such as "GPU101|GPU104@a") for each label in the comments."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            for kind, listed in _LABEL.findall(token.string):
                for label in listed.split(","):
                    yield token.start[0], kind, label.strip()


def read_case(path: Path) -> Case:
    """Raises SyntaxError where the case does not parse, ValueError where a label is not of the form above."""
    text = path.read_text(encoding="utf-8")
    starts = statement_starts(ast.parse(text, str(path), feature_version=(3, 10)))
    demands: list[Demand] = []
    marked: defaultdict[tuple[str, tuple[str, ...]], list[int]] = defaultdict(list)
    allowed: set[tuple[int, str]] = set()
    doubtful: set[tuple[int, str]] = set()
    notes: set[tuple[int, str]] = set()
    for row, kind, label in labels(text):
        match = _CODE.match(label)
        if match is None:
            raise ValueError(f"{path}:{row}: the label {label!r} is not GPUnnn, GPUnnn|GPUnnn or GPUnnn@mark")
        line, codes, mark = starts.get(row, row), tuple(match[1].split("|")), match[2]
        (doubtful if kind == "low" else allowed).update((line, code) for code in codes)
        if kind == "note":
            notes.update((line, code) for code in codes)
        if kind in ("expect", "note") and mark:
            marked[mark, codes].append(line)
        elif kind in ("expect", "note"):
            demands.append(Demand((line,), codes))
    demands += [Demand(tuple(lines), codes) for (_, codes), lines in marked.items()]
    return Case(path, text, tuple(demands), frozenset(allowed), frozenset(doubtful), frozenset(notes), starts)


def labelled(code: str, name: str) -> str:
    """The text of the case of a rule with this name, whichever question it is about."""
    (path,) = CASES.glob(f"*/{code}_{name}.py")
    return path.read_text(encoding="utf-8")


@cache
def all_cases() -> tuple[Case, ...]:
    return tuple(read_case(path) for path in sorted(CASES.glob("*/*.py")))


@cache
def rule_set() -> RuleSet:
    """The rules of a plain run, and those that are off by default but have programs here, with all they suspect."""
    rules = tuple(rule for rule in all_rules() if rule.default or any(CASES.glob(f"*/{rule.code}_*")))
    return RuleSet(rules, confidence=Confidence.LOW)


def implemented() -> frozenset[str]:
    return frozenset(rule.code for rule in rule_set().rules)


def examine(case: Case, codes: frozenset[str]) -> tuple[list[Demand], list[tuple[int, str]], list[Demand]]:
    """Demands met, false alarms, demands missed, counting only `codes`."""
    certain, doubtful = placed(case, codes)
    asked = [demand for demand in case.demands if codes.intersection(demand.codes)]
    asked += [Demand((line,), (code,)) for line, code in case.doubtful if code in codes]
    wanted = doubtful & case.doubtful
    met = [demand for demand in asked if demand.met(certain | wanted)]
    alarms = (certain | (doubtful - wanted)) - case.allowed
    return met, sorted(alarms), [demand for demand in asked if demand not in met]


def placed(case: Case, codes: frozenset[str]) -> tuple[set[tuple[int, str]], ...]:
    """What is found with high and with low confidence, by the line where its statement begins."""
    found: dict[Confidence, set[tuple[int, str]]] = {level: set() for level in Confidence}
    for finding in findings(case):
        if finding.code in codes:
            line = case.starts.get(finding.line, finding.line)
            found[finding.confidence].add((line, finding.code))
    return tuple(found.values())


FOUND: dict[tuple[Path, str], list[Finding]] = {}  # what `findings` gave: several tests ask for it


def findings(case: Case) -> list[Finding]:
    """What is found in a case, of several files in each of them."""
    if (case.path, case.text) not in FOUND:
        FOUND[case.path, case.text] = [
            one for name, text in laid_out(case) for one in lint_text(text, name, rule_set())
        ]
    return FOUND[case.path, case.text]


def laid_out(case: Case) -> Iterator[tuple[str, str]]:
    """The name and the text of each file of a case. Several lie in a folder of their own until the next is asked for."""
    files = case.files
    if not files:
        yield case.path.name, case.text
        return
    with TemporaryDirectory() as folder:
        Path(folder, "pyproject.toml").touch()  # the project ends here
        for name, text in files.items():
            Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
            Path(folder, name).write_text(text, encoding="utf-8")
        for name, text in files.items():
            yield str(Path(folder, name)), text


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_case(case: Case) -> None:
    shortfalls = set(shortcomings(case))
    known = known_shortcomings().get(case.name, set())
    new, mended = sorted(shortfalls - known), sorted(known - shortfalls)
    assert not new, f"{case.path}: {'; '.join(new)}"
    assert not mended, f"{case.path}: no longer so, take it out of {OPEN.name}: {'; '.join(mended)}"


def shortcomings(case: Case) -> list[str]:
    """What gpulint does not say of a case as a perfect tool would: `missed GPU101 on line 7`, `doubted …` where it is told
    with less confidence than the code allows, `note …` or `warning …` where it should be the other, `false alarm …`."""
    codes = implemented()
    _, alarms, missed = examine(case, codes)
    _, doubtful = placed(case, codes)
    found = []
    for demand in missed:
        what = "doubted" if demand.met(doubtful) else "missed"
        found.append(f"{what} {'|'.join(demand.codes)} on line {' or '.join(map(str, demand.places))}")
    expected = {(line, code) for demand in missed for line in demand.places for code in demand.codes}
    found += [f"{one.severity.word} {one.code} on line {one.line}" for one in misjudged(case)]
    return found + [
        f"false alarm {code} on line {line}" for line, code in alarms if (line, code) not in expected
    ]


def misjudged(case: Case) -> Iterator[Finding]:
    """The findings that are notes and should be more, or the other way round, of the rules that some case demands notes of."""
    for one in findings(case):
        place = (case.starts.get(one.line, one.line), one.code)
        if one.code in with_notes() and not one.doubts and place in case.allowed:
            if (one.severity is Severity.INFO) != (place in case.notes):
                yield one


@cache
def with_notes() -> frozenset[str]:
    return frozenset(code for case in all_cases() for _, code in case.notes)


@cache
def known_shortcomings() -> dict[str, set[str]]:
    """The shortcomings in `OPEN`, by case. They are exactly those that there are: what is mended has to leave the list."""
    known: defaultdict[str, set[str]] = defaultdict(set)
    for line in OPEN.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, what = line.partition(": ")
            known[name].add(what)
    return known


@pytest.mark.parametrize("question", [*QUESTIONS, *KINDS])
def test_every_unsafe_cut_says_why(question: str) -> None:
    codes = {"GPU101", "GPU102", "GPU103", "GPU104", "GPU106", "GPU107", "GPU201", "GPU202"}
    silent = [
        (case.name, one.line, one.code)
        for case in all_cases()
        if case.question == question
        for one in findings(case)
        if one.code in codes and one.fix is not None
        if (one.fix.applicability == "unsafe") != bool(one.fix.unsafe_because)
    ]
    assert silent == []


def test_known_shortcomings_are_of_cases() -> None:
    assert known_shortcomings().keys() <= {case.name for case in all_cases()}


def test_cases_are_well_formed() -> None:
    wrong = [f"{case.name}: {flaw}" for case in all_cases() if (flaw := _flaw(case))]
    assert not wrong, "\n".join(wrong)


def _flaw(case: Case) -> str | None:
    """What is wrong with how a case is named, or with its labels. Raises SyntaxError where it does not compile."""
    for name, text in (case.files or {case.path.name: case.text}).items():
        compile(text, name, "exec")
    if not case.kind:
        return "it is neither a bug nor ok"
    if case.question not in (QUESTIONS if case.code else KINDS):
        return "its folder is no question" if case.code else "its folder is no kind of program"
    asked = {code for demand in case.demands for code in demand.codes}
    about = {case.code} if case.code else asked or {"any"}
    doubtful = {code for _, code in case.doubtful}
    fits = bool((asked | doubtful) & about) if case.kind == "bug" else not asked & about
    return None if fits else f"it expects {sorted(asked)}"


def test_every_question_has_bugs_and_look_alikes() -> None:
    assert set(QUESTIONS) == {question.value for question in Question}
    kinds = {(case.question, case.kind) for case in all_cases()}
    assert {(question, kind) for question in QUESTIONS for kind in ("bug", "ok")} <= kinds


def test_names_are_of_one_case_each() -> None:
    names = Counter(case.path.name for case in all_cases() if case.code)
    assert [name for name, times in names.items() if times > 1] == []


def test_a_case_of_several_files_keeps_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "case.py"
    path.write_text(
        '"""What it is about."""\n# file: a.py\nx = 1\n# file: lib/b.py\ny = 2  # maybe: GPU101\n'
    )
    case = read_case(path)
    assert case.files == {"a.py": "\n\nx = 1\n", "lib/b.py": "\n\n\n\ny = 2  # maybe: GPU101\n"}
    assert case.allowed == {(5, "GPU101")}


def test_rules_say_that_they_doubt() -> None:
    doubtful = {code for case in all_cases() for _, code in case.doubtful}
    assert doubtful == {rule.code for rule in all_rules() if rule.doubts}


def test_at_least_as_many_look_alikes_as_bugs() -> None:
    kinds = Counter(case.kind for case in all_cases())
    assert kinds["ok"] >= kinds["bug"] > 0


if __name__ == "__main__":
    for case in all_cases():
        for what in shortcomings(case):
            print(f"{case.name}: {what}")
