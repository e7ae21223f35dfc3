"""What a run says to claims about where things are put: a collector that is called or off, outputs that an evaluation gathers."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from made import environment, rank, samples
from needs import cards, needs_torch

from gpulint.claims import Claim
from gpulint.findings import Finding, Severity
from gpulint.runtime.parent.evidence import Evidence
from gpulint.runtime.parent.judging import judge
from gpulint.runtime.record.result import Environment, LineFigures, Sample
from gpulint.verifying import verify

TRAINING = """
import gc
import torch
from torch import nn

class Step:
    def __init__(self, held):
        self.held = held
        self.me = self if {cycles} else None

model = nn.Linear(256, 256)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{before}
for number in range(40):
    out = model(torch.randn(64, 256))
    Step(out.detach())
    loss = out.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    del out, loss
    {after}
"""

# What transformers' Trainer does with the outputs of an evaluation, by its own names.
TRANSFORMERS = """
import torch

class TrainingArguments:
    def __init__(self, output_dir, eval_accumulation_steps=None):
        self.eval_accumulation_steps = eval_accumulation_steps

class AutoModelForCausalLM:
    @staticmethod
    def from_pretrained(name):
        return torch.nn.Linear(64, 512)

class Trainer:
    def __init__(self, model, args, eval_dataset=None, compute_metrics=None):
        self.model, self.args, self.data, self.compute_metrics = model, args, eval_dataset, compute_metrics

    def evaluate(self):
        self.model.eval()
        gathered, arrays = None, []
        for step, batch in enumerate(torch.utils.data.DataLoader(self.data, batch_size=8)):
            with torch.no_grad():
                logits = self.model(batch)
            gathered = logits if gathered is None else torch.cat((gathered, logits))
            every = self.args.eval_accumulation_steps
            if every is not None and (step + 1) % every == 0:
                arrays.append(gathered.numpy().copy())
                gathered = None
        return self.compute_metrics(gathered, arrays)
"""
EVALUATION = """
import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("gpt2")
arguments = TrainingArguments("out"{more})
trainer = Trainer(model, arguments, eval_dataset=torch.randn(320, 64), compute_metrics=lambda *all: len(all))
trainer.evaluate()
"""


def verified(
    text: str, folder: Path, code: str, row: int | None = None, claim: Claim | None = None
) -> tuple[str, str]:
    """The status and the text of the verdict on the finding of this code."""
    script = folder / "script.py"
    script.write_text(text, encoding="utf-8")
    given = None if row is None else [a_finding(str(script), row, code, claim)]
    result = verify(script, device="cpu", steps=10, confidence="low", findings=given, cwd=folder)
    (verdict,) = [one for one in result.verdicts if one.code == code]
    return verdict.status, verdict.text


def a_finding(file: str, row: int, code: str, claim: Claim | None) -> Finding:
    return Finding(code, "name", Severity.WARNING, "message", file, row, 1, row + 1, 1, claim=claim)


@needs_torch
@pytest.mark.usefixtures("warm_scripts")
@pytest.mark.parametrize(
    ("cycles", "before", "after", "code", "told", "words"),
    [
        # a collect is no waste where it frees tensors
        (True, "", "gc.collect()", "GPU502", "refuted", "a call of tensors that wait in reference cycles"),
        (False, "", "gc.collect()", "GPU502", "confirmed", "it freed nothing on the device"),
        # a collector that is off matters where something waits for it
        (True, "gc.disable()", "pass", "GPU408", "confirmed", ""),
        (False, "gc.disable()", "pass", "GPU408", "refuted", ""),
    ],
)
def test_what_the_collector_has_to_free_tells(
    cycles: bool, before: str, after: str, code: str, told: str, words: str, tmp_path: Path
) -> None:
    status, said = verified(TRAINING.format(cycles=cycles, before=before, after=after), tmp_path, code)
    assert (status, words in said) == (told, True)


@needs_torch
@pytest.mark.usefixtures("warm_scripts")
@pytest.mark.parametrize(("more", "status"), [("", "confirmed"), (", eval_accumulation_steps=1", "refuted")])
def test_an_evaluation_gathers_or_moves_on(more: str, status: str, tmp_path: Path) -> None:
    (tmp_path / "transformers.py").write_text(TRANSFORMERS, encoding="utf-8")
    text = EVALUATION.format(more=more)
    row = next(n for n, line in enumerate(text.splitlines(), 1) if line.startswith("trainer ="))
    assert verified(text, tmp_path, "GPU108", row, Claim("gathered"))[0] == status


# -- what only a machine with GPUs measures, judged by figures -------------------------------------------------------


def judged(
    claim: Claim, where: Environment, line: LineFigures, steps: Sequence[Sample] = (), ranks: int = 1
) -> str:
    seen = rank(steps, environment=where, world_size=ranks, lines=(line,))
    return judge(a_finding(line.file, line.line, "GPU999", claim), Evidence(seen)).status


ON_GPU = environment(card=1)
LINE = LineFigures("/x.py", 3, 1)


@pytest.mark.parametrize(
    ("rise", "left", "status"),
    [
        (205 << 20, 88 << 20, "confirmed"),  # net.cuda().half()
        (88 << 20, 88 << 20, "refuted"),  # net.half().cuda()
        (1 << 20, -(85 << 20), "confirmed"),  # net.half(), of what is on the GPU
    ],
)
def test_a_cast_takes_more_than_it_leaves(rise: int, left: int, status: str) -> None:
    line = replace(LINE, early=rise, left=left)
    assert judged(Claim("transient", device_only=True), ON_GPU, line) == status


@pytest.mark.parametrize(
    ("contexts", "card", "status"),
    [((0, 1), 1, "confirmed"), ((1,), 1, "refuted"), ((0,), 0, "inconclusive"), ((), None, "inconclusive")],
)
def test_a_context_on_a_foreign_card(contexts: tuple[int, ...], card: int | None, status: str) -> None:
    where = replace(ON_GPU, contexts=contexts, card=card)
    assert judged(Claim("context", device_only=True), where, LINE) == status


def test_of_several_ranks_the_one_on_the_first_card_does_not_keep_the_others_from_refuting() -> None:
    first = replace(ON_GPU, contexts=(0,), card=0)
    assert judged(Claim("context", device_only=True), first, LINE, ranks=2) == "refuted"


@pytest.mark.parametrize(("seconds", "status"), [(0.008, "confirmed"), (0.00001, "refuted")])
def test_a_move_in_every_step_by_its_time(seconds: float, status: str) -> None:
    steps = samples([1000] * 10, duration=0.01)
    line = replace(LINE, hits=10, sampled_hits=10, seconds=seconds)
    assert judged(Claim("transfer", device_only=True), ON_GPU, line, steps) == status


@pytest.mark.parametrize("kind", ["transient", "context", "transfer"])
def test_without_a_gpu_they_cannot_tell(kind: str) -> None:
    assert judged(Claim(kind, device_only=True), environment("cpu"), LINE) == "inconclusive"  # type: ignore[arg-type]


# -- on a GPU --------------------------------------------------------------------------------------------------------

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.mark.skipif(cards() < 1, reason="needs a CUDA device")
def test_the_cast_and_the_moves_of_the_fixture_are_measured_on_a_gpu() -> None:
    result = verify(FIXTURES / "half_precision_scoring.py", device="cuda", confidence="low")
    found = {verdict.code: verdict.status for verdict in result.verdicts}
    assert found["GPU407"] == "confirmed"
    assert found["GPU505"] in ("confirmed", "refuted")


@pytest.mark.skipif(cards() < 2, reason="needs two CUDA devices")
@pytest.mark.parametrize(("first", "status"), [(False, "confirmed"), (True, "refuted")])
def test_a_rank_that_chooses_its_card_late_has_two_contexts(first: bool, status: str, tmp_path: Path) -> None:
    script = tmp_path / "ranks.py"
    lines = ["model = torch.nn.Linear(64, 64).cuda()", "torch.cuda.set_device(int(os.environ['LOCAL_RANK']))"]
    script.write_text(
        "import os\nimport torch\n"
        + "\n".join(reversed(lines) if first else lines)
        + "\nmodel = model.cuda()\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nfor _ in range(30):\n"
        "    model(torch.randn(8, 64).cuda()).mean().backward()\n    optimizer.step()\n    optimizer.zero_grad()\n"
    )
    row = 3 if first else 4
    finding = a_finding(str(script), row, "GPU605", Claim("context", device_only=True))
    result = verify(script, device="cuda", findings=[finding], launch=("--nproc-per-node", "2"), cwd=tmp_path)
    (verdict,) = result.verdicts
    assert verdict.status == status, verdict.text
