"""Every leak is found and its holder named; no benign program raises an alarm. On the CPU, and on CUDA where there is one."""

import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from starting import start

from gpulint.runtime.parent.verdict import verify
from gpulint.runtime.record.result import RankResult, RunResult

torch = pytest.importorskip("torch")

PROGRAMS = Path(__file__).parent / "programs"
EACH = sorted(path for path in PROGRAMS.glob("*.py") if path.stem != "setting")
LEAKS = [path for path in EACH if "# holder: " in path.read_text()]


class Expected(NamedTuple):
    """A program and what its head says about it."""

    path: Path
    facts: dict[str, str]

    @classmethod
    def of(cls, path: Path) -> "Expected":
        head = [line for line in path.read_text().splitlines() if line.startswith("# ")]
        found = [re.match(r"# ([a-z-]+): (.*)", line) for line in head]
        return cls(path, {match[1]: match[2] for match in found if match})

    def line_number(self) -> int:
        """The row of the line that `# line:` quotes."""
        lines = self.path.read_text().splitlines()
        return next(n for n, line in enumerate(lines, 1) if line.strip() == self.facts["line"])


def reason_to_skip(path: Path) -> str | None:
    """Why a program cannot run on this machine, or None."""
    if Expected.of(path).facts.get("needs") == "cuda" and not torch.cuda.is_available():
        return "CUDA graphs need a GPU, and there is none here"
    if Expected.of(path).facts.get("needs") == "compiler" and not (shutil.which("gcc") or shutil.which("cc")):
        return "torch.compile needs a C compiler, and there is none here"
    return None


def _rank(result: RunResult, device: str) -> RankResult:
    assert result.end.reason in ("stopped", "finished"), (result.end, result.stderr)
    (rank,) = result.ranks
    assert rank.environment.device == device
    assert not any("could not" in note for note in rank.notes), rank.notes
    return rank


def check(path: Path, result: RunResult, device: str) -> None:
    """Raise AssertionError unless a leak was found, in its true size, and its holder named, or if anything else was called one."""
    (_check_leak if path in LEAKS else _check_benign)(path, result, device)


def _check_leak(path: Path, result: RunResult, device: str) -> None:
    expected = Expected.of(path)
    rank = _rank(result, device)
    facts, kind = expected.facts, expected.facts.get("kind", "train")
    leaks = [drift for drift in rank.leaks() if drift.kind == kind]
    on_device = facts.get("bytes") != "0"
    assert bool(leaks) == on_device, rank.drifts
    if facts.get("bytes", "0") != "0":
        windows = "window" in facts
        assert {drift.window for drift in leaks} == {facts.get("window", "")}, rank.drifts
        found = sum(drift.per_window if windows else drift.bytes_per_step for drift in leaks)
        # On CUDA an address that happens to be in use at every reading looks old, so a batch may count once.
        assert abs(found / int(facts["bytes"]) - 1) < (0.06 if device == "cuda" else 0.001), rank.drifts
    assert rank.holders, rank.drifts
    holder = rank.holders[0]
    assert holder.text.startswith(facts["holder"]), [one.text for one in rank.holders]
    assert (holder.file, holder.line) == (str(path), expected.line_number()), holder
    if on_device:
        assert holder.bytes >= 0.9 * sum(drift.total for drift in leaks), (holder, leaks)
    if facts.get("graph") == "yes":
        assert holder.through_graph, holder
    if "nodes" in facts:
        assert holder.nodes >= int(facts["nodes"]) * (rank.steps(kind) - 3), holder
    if "limit" in facts:
        (limited,) = {drift.reason for drift in leaks}
        assert f": {facts['limit']}" in limited, limited
    _check_agreement(result)
    if facts.get("share") == "third" and device == "cpu":
        assert all(0.3 < drift.share < 0.4 for drift in leaks), leaks


def _check_agreement(result: RunResult) -> None:
    """The exit status, the account and what is said of holders are one thing said three times."""
    found = verify("train.py", result, ())
    assert found.exit_code == int(found.drift > 0), found
    assert bool(found.rates) == (found.drift > 0)
    named = sum(one.device for one in found.unpredicted) + sum(one.device for one in found.unexplained)
    assert abs(named - found.drift) <= 0.25 * found.drift, (named, found.rates, found.unpredicted)
    growing = {one.text for one in found.unpredicted if one.device > 0}
    assert not any(holder in one.text for holder in growing for one in found.harmless if one.device), found


def _check_benign(path: Path, result: RunResult, device: str) -> None:
    facts = Expected.of(path).facts
    rank = _rank(result, device)
    assert rank.leaks("device") == (), (rank.drifts, [holder.text for holder in rank.holders])
    assert [trend for trend in rank.trends if trend.status == "fragmentation"] == [], rank.trends
    if device == "cpu":
        as_eager = any("verified as eager" in note for note in rank.notes)
        assert as_eager == ("torch.compile(" in path.read_text()), rank.notes
    if "boundary" in facts:
        assert (rank.boundary, rank.steps() >= 5) == (facts["boundary"], True), rank.samples
    _check_agreement(result)
    if "status" in facts and device == "cpu":
        assert {drift.status for drift in rank.drifts} == {facts["status"]}, rank.drifts
    if "host" in facts and device == "cpu":
        assert rank.leaks("host") != (), rank.drifts
    if "forwards-per-step" in facts:
        per_step = sum(forward.count for forward in rank.forwards) / len(rank.samples)
        assert abs(per_step / float(facts["forwards-per-step"]) - 1) <= 0.1, (per_step, rank.forwards)


# -- each of them --------------------------------------------------------------------------------------------


DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def measured(path: Path) -> None:
    reason = reason_to_skip(path)
    if reason is not None:
        pytest.skip(reason)
    check(path, start(str(path), device=DEVICE), DEVICE)


@pytest.mark.usefixtures("warm_scripts")
@pytest.mark.parametrize(
    "path", EACH, ids=[f"{'leak' if path in LEAKS else 'benign'}-{path.stem}" for path in EACH]
)
def test_what_is_found_is_what_the_head_says(path: Path) -> None:
    measured(path)


@pytest.mark.parametrize("name", ["loss_held_after_backward", "loader_workers_spawn"])
def test_as_a_user_runs_it(name: str) -> None:
    (path,) = (path for path in EACH if path.stem == name)
    measured(path)
