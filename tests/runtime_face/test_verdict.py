"""Verdicts from made-up measurements: what each kind of claim needs to be confirmed or refuted."""

from dataclasses import replace
from pathlib import Path

import pytest
from gpulint.rules import all_rules
from made import (
    CLAIMS,
    FILE,
    SITE,
    drift,
    environment,
    finding,
    holder,
    ran,
    rank,
    samples,
    text_of,
    verified,
)

from gpulint.claims import Claim
from gpulint.findings import Finding, Position, Related
from gpulint.rule import Rule
from gpulint.runtime.parent.verdict import Verdict, Verification
from gpulint.runtime.record.peaks import StretchPeak
from gpulint.runtime.record.result import (
    CallFigures,
    End,
    EndReason,
    ForwardFigures,
    Held,
    Holder,
    LineFigures,
    RankResult,
    Site,
    Trend,
)


def judged(code: str, result: RankResult, claim: Finding | None = None) -> Verdict:
    return verified(result, findings=[claim or finding(code)]).verdicts[0]


def verification(claim: Finding | list[Finding], *ranks: RankResult, max_drift: int = 0) -> Verification:
    return verified(*ranks, findings=claim if isinstance(claim, list) else [claim], max_drift=max_drift)


def test_every_shipped_rule_says_what_it_claims_and_any_other_claims_growth() -> None:
    own = [rule.__mro__[: rule.__mro__.index(Rule)] for rule in all_rules()]
    assert all(any("runtime_claim" in vars(one) for one in classes) for classes in own)
    assert finding("MINE1").runtime_claim.kind == "drift"
    found = judged("MINE1", rank(holders=(holder(),), drifts=(drift(),), lines=(ran(),)))
    assert found.status == "confirmed"


def test_nodes_without_bytes_are_confirmed_and_negligible_on_the_gpu() -> None:
    heap = Trend("heap", "train", "growing", 21000.0, 0, 420000, 20)
    found = judged("GPU101", rank(holders=(holder(0, nodes=18 * 12),), lines=(ran(),), trends=(heap,)))
    assert found.headline == "confirmed, negligible on the GPU"
    assert (found.device, found.nodes, found.host) == (0.0, 12.0, 21000.0)


def test_a_graph_that_grows_is_what_the_forwards_without_a_backward_keep() -> None:
    there = Site(FILE, 13, "sample")
    ran_there = ForwardFigures(replace(there, line=12), "Net", True, True, 9, 1 << 20, 512, 0.1)
    growing = holder(line=40, through_graph=True, variable="state", text="tensor `state`")
    growing = replace(growing, births=(Held(there, 16, 16 * 4096),))

    def told(forward: ForwardFigures, held: Holder) -> Verification:
        measured = rank(holders=(held,), drifts=(drift(site=there),), lines=(ran(),), forwards=(forward,))
        return verification(finding("GPU201"), measured)

    found = told(ran_there, growing)
    assert found.unpredicted == ()
    assert (found.verdicts[0].device, found.verdicts[0].holder) == (4096.0, "tensor `state`")
    assert "it grows: 4.00 KiB a step" in found.verdicts[0].text
    # one that a backward went through, and one that keeps no graph, are not what the finding means
    assert len(told(replace(ran_there, visited=9), growing).unpredicted) == 1
    assert len(told(ran_there, replace(growing, through_graph=False)).unpredicted) == 1


def test_what_makes_the_exit_status_is_not_called_negligible() -> None:
    measured = rank(holders=(holder(16 * 512),), drifts=(drift(512.0),))
    for max_drift, negligible, code in ((0, False, 1), (511, False, 1), (512, True, 0)):
        found = verification(finding("GPU101"), measured, max_drift=max_drift)
        assert (found.verdicts[0].negligible, found.exit_code) == (negligible, code)


def test_drift_is_the_sum_of_all_leaks_each_counted_once() -> None:
    other = Site("/project/model.py", 30, "pool")
    births = (Held(other, 16, 16 * 512),)
    second = holder(16 * 512, line=44, variable="kept", text="list `kept` in `train()`")
    measured = rank(
        holders=(holder(16 * 512), replace(second, births=births, lines=(44,))),
        drifts=(drift(512.0), drift(512.0, site=other)),
        lines=(ran(), ran(44)),
    )
    both = [finding("GPU101"), finding("GPU102"), finding("GPU101", 44, "kept")]
    found = verification(both, measured, max_drift=600)
    assert [verdict.device for verdict in found.verdicts] == [512.0, 512.0, 512.0]
    assert found.drift == 1024.0
    assert (found.exit_code, [v.negligible for v in found.verdicts]) == (1, [False] * 3)
    assert verification(both, measured, max_drift=1024).exit_code == 0
    assert verification([], measured, max_drift=600).drift == 1024.0


def test_a_gpu_that_was_asked_for_and_not_used_refutes_nothing() -> None:
    end = End("no-device", "--device cuda was asked for, and the script never used the GPU")
    found = verification(finding("GPU101"), rank(lines=(ran(),), end=end))
    assert (found.verdicts[0].status, found.exit_code) == ("inconclusive", 2)
    assert "never used the GPU" in found.verdicts[0].text


def test_nothing_sampled_is_no_all_clear() -> None:
    unsampled = samples([1000] * 3, warmup=3)
    found = verification(finding("GPU101"), rank(unsampled, lines=(ran(hits=3, sampled=0),)))
    assert found.verdicts[0].status == "inconclusive"
    assert (found.failed, found.exit_code) == (True, 2)


def test_a_holder_is_matched_by_related_line_by_name_and_by_birth() -> None:
    elsewhere = holder(line=40, variable="losses")
    by_line = finding("GPU104", related=(Related(FILE, Position(40, 1), "kept here"),))
    measured = rank(holders=(elsewhere,), drifts=(drift(),), lines=(ran(),))
    assert judged("GPU104", measured, by_line).device == 4096.0
    by_name = finding("GPU101", subject="losses")
    assert judged("GPU101", measured, by_name).device == 4096.0
    assert judged("GPU101", measured, finding("GPU101", subject="other")).status == "refuted"
    here = Site(FILE, 12, "train")
    born = rank(holders=(), drifts=(drift(site=here),), lines=(ran(),))
    assert judged("GPU102", born).device == 4096.0


@pytest.mark.parametrize(
    ("lines", "status", "words"),
    [
        ((ran(hits=24, sampled=20),), "refuted", "ran in 20 of the steps that were judged, and nothing grew"),
        ((ran(hits=0, sampled=0),), "not reached", "did not run"),
        ((ran(hits=3, sampled=0),), "inconclusive", "before sampling began"),
        ((ran(hits=6, sampled=2),), "inconclusive", "only 2 of the steps"),
        ((ran(hits=90, sampled=30, judged_hits=0),), "inconclusive", "none of the steps in which growth"),
        ((), "inconclusive", "could not be counted"),
    ],
)
def test_without_drift_the_line_decides(lines: tuple[LineFigures, ...], status: str, words: str) -> None:
    found = judged("GPU101", rank(lines=lines))
    assert found.status == status
    assert words in found.text


@pytest.mark.parametrize(
    ("reason", "said", "told"),
    [
        ("stopped", "stopped", " within 20 steps; run more (--steps, --reach)"),
        ("raised", "the script raised OSError: no data", ": the script raised OSError: no data"),
        ("finished", "the script ended by itself", ": the script ended by itself"),
    ],
)
def test_why_a_line_did_not_run(reason: EndReason, said: str, told: str) -> None:
    for code in ("GPU101", "GPU601", "GPU605", "GPU108"):
        found = judged(code, rank(lines=(ran(hits=0, sampled=0),), end=End(reason, said)))
        assert (found.status, found.text) == ("not reached", f"the line did not run{told}")


def test_limits_garbage_and_irregular_survivors() -> None:
    bounded = rank(holders=(holder(bound=100),), drifts=(drift(status="bounded"),), lines=(ran(),))
    assert judged("GPU101", bounded).status == "refuted"
    irregular = rank(holders=(holder(),), drifts=(drift(status="occasional"),), lines=(ran(),))
    assert judged("GPU101", irregular).status == "inconclusive"
    here = Site(FILE, 12, "train")
    waiting = rank(drifts=(drift(status="gc-garbage", site=here),), lines=(ran(),))
    assert judged("GPU101", waiting).status == "refuted"
    assert judged("GPU302", waiting).status == "confirmed"
    assert verification(finding("GPU101"), waiting).garbage


def test_drift_without_a_holder_is_unpredicted_by_site() -> None:
    found = verification([], rank(drifts=(drift(),)))
    assert [(u.file, u.line, u.device) for u in found.unpredicted] == [(SITE.file, 8, 4096.0)]


def test_tensors_that_pile_up_on_the_host_are_no_gpu_drift() -> None:
    found = verification([], rank(holders=(holder(place="host"),), drifts=(drift(place="host"),)))
    assert found.unpredicted == ()
    assert found.exit_code == 0


def forward(line: int = 12, **more: object) -> ForwardFigures:
    base = ForwardFigures(Site(FILE, line, "evaluate"), "Net", False, True, 30, 1 << 20, 512, 0.1)
    return replace(base, **more)  # type: ignore[arg-type]


def test_a_forward_with_grad_in_an_evaluation() -> None:
    found = judged("GPU201", rank(forwards=(forward(),), lines=(ran(),)))
    assert (found.status, found.bytes, found.hits) == ("confirmed", 1 << 20, 30)
    off = forward(grad=False, kept=0)
    assert judged("GPU201", rank(forwards=(off,), lines=(ran(),))).status == "refuted"
    assert judged("GPU201", rank(lines=(ran(hits=0, sampled=0),))).status == "not reached"


def test_a_forward_that_a_backward_went_through_is_refuted() -> None:
    def status(code: str, *forwards: ForwardFigures, **more: object) -> str:
        return judged(code, rank(forwards=forwards, lines=(ran(),)), finding(code, **more)).status

    needed = forward(visited=10)
    assert [status(code, needed) for code in ("GPU201", "GPU202")] == ["refuted", "refuted"]
    assert status("GPU203", needed) == "confirmed"  # its claim is that the backward does go through
    assert status("GPU202", needed, claim=Claim("forward")) == "confirmed"  # no optimizer trains it
    assert status("GPU201", forward(visited=10, dead=2)) == "confirmed"
    assert status("GPU201", forward()) == "confirmed"  # not followed, or held: who knows
    assert status("GPU201", needed, forward(module="Loss", weights=False)) == "refuted"
    assert status("GPU201", needed, forward(module="Other")) == "confirmed"


def test_what_is_reached_through_a_function_may_be_needed_by_another_caller(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "def evaluate(batches):\n    return [forward_batch(batch).item() for batch in batches]\n"
    )
    helper = replace(forward(visited=10), site=Site(str(tmp_path / "engine.py"), 3, "forward_batch"))
    claim = finding("GPU201", 2, filename=str(script))
    line = LineFigures(str(script), 2, 20, 20)
    assert judged("GPU201", rank(forwards=(helper,), lines=(line,)), claim).status == "confirmed"


def test_a_forward_for_nothing_is_told_without_a_finding() -> None:
    def told(*forwards: ForwardFigures, claims: tuple[Finding, ...] = (), peak: int = 2000) -> list[int]:
        found = verification(list(claims), rank(forwards=forwards, lines=(ran(),), steps=samples(peak=peak)))
        assert found.exit_code == 0
        return [wasted.line for wasted in found.wasted]

    idle = forward(dead=9, wasted=1 << 20)
    assert told(idle) == [12]
    assert told(replace(idle, visited=1)) == []
    assert told(replace(idle, dead=2)) == []
    assert told(replace(idle, wasted=32 << 10)) == []
    assert told(idle, peak=4 << 30) == []
    assert told(replace(idle, weights=False)) == []
    assert told(idle, claims=(finding("GPU201"),)) == []
    assert told(idle, claims=(finding("GPU204", line=3),)) == []
    assert told(idle, claims=(finding("GPU201", line=40),)) == [12]
    around = replace(forward(30, dead=9, wasted=3 << 20), training=True)
    assert told(replace(idle, inner=True), around) == [30]
    assert told(replace(idle, inner=True)) == [12]


def test_no_grad_is_not_advised_on_a_line_that_trains_too() -> None:
    idle = forward(dead=9, wasted=1 << 20)
    trained = replace(idle, training=True, visited=9, dead=0, wasted=None)
    (alone,) = verification([], rank(forwards=(idle,))).wasted
    (both,) = verification([], rank(forwards=(idle, trained))).wasted
    assert alone.text.endswith("run it under `torch.no_grad()`")
    assert "its line trains as well" in both.text
    assert "run it under" not in both.text


def test_a_forward_for_nothing_names_its_ranks_and_what_it_keeps() -> None:
    small, large = (forward(dead=9, wasted=size << 20) for size in (1, 3))
    found = verification([], rank(forwards=(small,)), rank(number=1, forwards=(large,)), rank())
    assert [(w.ranks, w.bytes, w.mode) for w in found.wasted] == [((0, 1), 3 << 20, "eval")]
    assert "a call keeps 3.00 MiB of activations for nothing (the median)" in found.wasted[0].text
    said = text_of(found)
    assert "found by running `Net` runs with grad enabled, in eval mode, but no backward" in said
    assert "0 findings; 1 forward for nothing." in said
    assert Verification.from_json(found.to_json()) == found


def test_calls_are_judged_by_their_time() -> None:
    def call(seconds: float, what: str = "gc.collect") -> tuple[CallFigures, ...]:
        return (CallFigures(what, Site(FILE, 12, "train"), 23, 20, seconds),)

    slow = judged("GPU502", rank(calls=call(0.2), lines=(ran(),)))
    assert (slow.status, slow.seconds) == ("confirmed", 0.01)
    assert "50% of its time" in slow.text
    assert judged("GPU502", rank(calls=call(0.0001), lines=(ran(),))).status == "refuted"
    on_cpu = rank(device="cpu", calls=call(0.0001, "torch.cuda.empty_cache"), lines=(ran(),))
    assert judged("GPU501", on_cpu).status == "inconclusive"
    freed = replace(call(0.1, "torch.cuda.empty_cache")[0], released=20 << 20)
    assert "gave back 1.00 MiB a call" in judged("GPU501", rank(calls=(freed,), lines=(ran(),))).text


def test_late_release_is_judged_at_the_peak(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "for x in data:\n    out = model(x)\n    loss = criterion(out)\n    loss.backward()\n    step()\n"
    )

    def figures(backward: int) -> RankResult:
        levels = {2: 500, 3: 600, 4: backward, 5: 300}
        tensors = {"out": 200, "loss": 4}
        lines = [
            LineFigures(str(script), n, 20, 20, tensors=tensors, level=level) for n, level in levels.items()
        ]
        return rank(lines=tuple(lines))

    claim = finding("GPU401", 3, "out", filename=str(script))
    found = judged("GPU401", figures(750), claim)
    assert (found.status, found.bytes) == ("confirmed", 150)
    assert "on line 4" in found.text
    assert judged("GPU401", figures(550), claim).status == "refuted"


KEEPING = (ForwardFigures(Site(FILE, 5, "train"), "Net", True, True, 20, 10_000, 512, 0.1),)
OFTEN = {"forwards": KEEPING, "lines": (ran(hits=80, sampled=80),)}
ALIAS = Claim("alias", device_only=True)


@pytest.mark.parametrize(
    ("code", "measured", "status", "size"),
    [
        ("GPU402", rank(lines=(ran(hits=4, level=9000),)), "confirmed", 8000),
        ("GPU402", rank(lines=(ran(hits=0, sampled=0),)), "not reached", None),
        ("GPU301", rank(forwards=KEEPING, lines=(ran(growth=0),)), "confirmed", 10_000),
        ("GPU301", rank(forwards=KEEPING, lines=(ran(growth=-9_000),)), "refuted", None),
        ("GPU302", rank(forwards=KEEPING, lines=(ran(growth=200),)), "confirmed", 10_000),
        ("GPU302", rank(forwards=KEEPING, lines=(ran(growth=-9_000),)), "refuted", None),
        ("GPU303", rank(samples(peak=45_000), **OFTEN), "confirmed", 30_000),
        ("GPU303", rank(samples(peak=12_000), **OFTEN), "refuted", None),
        # a copy that takes the place of the one before is still a copy
        ("GPU404", rank(lines=(ran(growth=0, peak=9000),)), "confirmed", 9000),
        ("GPU404", rank(lines=(ran(hits=1, sampled=0, early=9000),)), "confirmed", 9000),
        ("GPU404", rank(lines=(ran(growth=0, peak=0),)), "refuted", None),
        ("GPU404", rank(device="cpu", lines=(ran(growth=0, peak=9000),)), "inconclusive", None),
        (ALIAS, rank(lines=(ran(growth=0, peak=0),)), "confirmed", 0),
        (ALIAS, rank(lines=(ran(growth=0, peak=9000),)), "refuted", None),
    ],
)
def test_what_a_line_has_done_is_judged(
    code: str | Claim, measured: RankResult, status: str, size: int | None
) -> None:
    claim = finding(code) if isinstance(code, str) else finding("GPU404", subject="best", claim=code)
    found = judged("", measured, claim)
    assert (found.status, found.bytes, found.negligible) == (status, size, size == 0)


def test_ranks_are_merged_and_named() -> None:
    clean = rank(lines=(ran(),))
    leaking = rank(number=1, holders=(holder(),), drifts=(drift(),), lines=(ran(),))
    found = verification(finding("GPU101"), clean, leaking)
    assert found.verdicts[0].ranks == (1,)
    assert found.verdicts[0].text.startswith("on rank 1: ")
    assert verification([], clean, leaking).unpredicted[0].ranks == (1,)


def test_exit_codes_of_runs_that_did_not_end_well() -> None:
    assert verification(finding("GPU101")).exit_code == 2
    assert verification(finding("GPU101")).verdicts[0].status == "inconclusive"
    raised = rank(end=End("raised", "the script raised"))
    assert verification([], raised).exit_code == 2
    late = End("timeout", "the time was up")
    assert verification([], rank(end=late)).exit_code == 2
    assert verification([], rank(holders=(holder(),), drifts=(drift(),), end=late)).exit_code == 1
    assert verification([], rank(end=End("interrupted", "interrupted"))).exit_code == 130


def test_the_batch_in_use_is_no_growth() -> None:
    """One tensor of this step, born on the line where another leaks."""
    passing = replace(holder(variable="y"), bytes=4096, births=(Held(SITE, 1, 4096),), line=11, lines=())
    leaking = replace(holder(), births=(Held(SITE, 16, 15 * 4096),))
    measured = rank(holders=(leaking, passing), drifts=(drift(),), lines=(ran(),))
    found = verification(finding("GPU101"), measured)
    assert found.verdicts[0].status == "confirmed"
    assert found.unpredicted == ()


def test_allocator_settings_are_compared_with_what_was_read_back(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text('os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:128"  # see: the manual\n')

    def settled(code: str, settings: str | None, peak: int = 2000, **more: object) -> Verdict:
        asked = replace(CLAIMS[code], options=("max_split_size_mb",))
        claim = finding(code, 1, filename=str(script), claim=asked)
        peaks = (StretchPeak("steps", peak, 2200),)
        line = LineFigures(str(script), 1, 1)
        return judged(
            code, rank(environment=environment(allocator=settings), peaks=peaks, lines=(line,), **more), claim
        )

    in_force = "max_split_size_mb:128,expandable_segments:False"
    assert settled("GPU604", in_force).status == "inconclusive"
    assert settled("GPU604", "expandable_segments:False").status == "confirmed"
    assert settled("GPU601", in_force).status == "inconclusive"
    assert settled("GPU601", in_force, peak=1000).status == "confirmed"
    refusal = "Unrecognized key 'x' in CUDA allocator config"
    refused = settled("GPU604", None, end=End("raised", "the script raised ValueError", refusal=refusal))
    assert refused.status == "confirmed"
    assert refused.text.endswith("refused the setting: Unrecognized key 'x' in CUDA allocator config")


def test_one_clearing_call_does_not_hide_another() -> None:
    def call(what: str, seconds: float) -> CallFigures:
        return CallFigures(what, Site(FILE, 12, "train"), 23, 20, seconds)

    calls = (call("gc.collect", 0.39), call("torch.cuda.empty_cache", 0.0004))  # of 20 steps of 20 ms
    assert judged("GPU501", rank(calls=calls, lines=(ran(),))).status == "confirmed"
    assert judged("GPU501", rank(calls=calls[1:], lines=(ran(),))).status == "refuted"


def test_the_rank_that_grows_is_the_one_that_is_shown() -> None:
    growing = tuple(replace(s, allocated=1000 + 4096 * s.step) for s in samples())
    ranks = (rank(drifts=()), replace(rank(drifts=()), rank=1, samples=growing))
    said = text_of(verification([], *ranks))
    assert "2 ranks, rank 1 shown" in said
    assert "+4.00 KiB a step" in said


@pytest.mark.parametrize(
    "message", ["`losses` keeps `loss`", "`loss` stays in `losses`", "no optimizer trains it", ""]
)
def test_a_reworded_message_changes_no_verdict(message: str) -> None:
    """Two containers are filled on one line, and each finding means its own, whatever is said of it."""
    other = Site("/project/model.py", 9, "forward")
    holders = (
        holder(16 * 512, text="losses", lines=(12,)),
        holder(text="outputs", variable="outputs", lines=(12,), births=(Held(other, 16, 16 * 4096),)),
    )
    measured = rank(holders=holders, drifts=(drift(512.0), drift(4096.0, site=other)), lines=(ran(),))
    claims = [finding(subject=name, message=message) for name in ("losses", "outputs")]
    assert [(v.status, v.device, v.holder) for v in verification(claims, measured).verdicts] == [
        ("confirmed", 512.0, "losses"),
        ("confirmed", 4096.0, "outputs"),
    ]
