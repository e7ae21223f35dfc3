"""What findings tell programs: the subject and the claim of each rule's findings, through JSON and the cache, and that the
verifier goes by nothing else."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from gpulint.rules import all_rules
from test_rules import SUSPECTING, code_in, found_in

from gpulint.claims import DRIFT, Claim
from gpulint.findings import Finding
from gpulint.lint.cache import Cache
from gpulint.lint.results import FileResult
from gpulint.runtime.child.running import failed
from gpulint.runtime.parent.source import called_on
from gpulint.runtime.probes.frames import Frames
from gpulint.runtime.record.result import End
from gpulint.verifying import with_claims

# What the findings of each rule's documented example are about, as the example spells it.
SUBJECTS = {
    "GPU101": ["total"],
    "GPU102": ["outputs"],
    "GPU103": ["hidden"],
    "GPU104": ["meter.sum"],
    "GPU105": ["activations"],
    "GPU106": ["FEATURES"],
    "GPU107": ["self.shadow"],
    "GPU108": ["Trainer"],
    "GPU109": ["ctx.y"],
    "GPU201": ["model"],
    "GPU202": ["teacher"],
    "GPU203": ["fake"],
    "GPU204": ["torch.no_grad"],
    "GPU301": ["loss.backward"],
    "GPU302": ["loss.backward"],
    "GPU303": ["total"],
    "GPU304": ["optimizer.zero_grad"],
    "GPU401": ["logits"],
    "GPU402": ["torch.cuda.OutOfMemoryError"],
    "GPU403": ["torch.load"],
    "GPU404": ["best"],
    "GPU405": ["model"],
    "GPU406": [""],
    "GPU407": ["model"],
    "GPU408": ["gc.disable"],
    "GPU409": ["hidden_states"],
    "GPU501": ["torch.cuda.empty_cache"],
    "GPU502": ["gc.collect"],
    "GPU503": ["torch.cuda.synchronize"],
    "GPU504": ["predicted"],
    "GPU505": ["torch.zeros"],
    "GPU601": ["PYTORCH_CUDA_ALLOC_CONF"],
    "GPU602": ["PYTORCH_CUDA_ALLOC_CONF"],
    "GPU603": ["torch.cuda.amp.GradScaler", "torch.cuda.memory_cached"],
    "GPU604": ["PYTORCH_CUDA_ALLOC_CONF"],
    "GPU605": ["torch.cuda.set_device"],
}

BY_CODE = {rule.code: rule for rule in all_rules()}
each_code = pytest.mark.parametrize("code", sorted(BY_CODE))


def found(code: str, folder: Path) -> list[Finding]:
    text = code_in(BY_CODE[code], "Example")
    return found_in(text, folder) or found_in(text, folder, SUSPECTING)


@each_code
def test_the_subject_is_the_name_in_the_code(code: str, tmp_path: Path) -> None:
    assert sorted({finding.subject for finding in found(code, tmp_path)}) == SUBJECTS[code]


@each_code
def test_a_finding_carries_its_rules_claim(code: str, tmp_path: Path) -> None:
    rule = BY_CODE[code]
    for finding in found(code, tmp_path):
        assert replace(finding.claim, options=()) == rule.runtime_claim


@each_code
def test_it_survives_json_and_the_cache(code: str, tmp_path: Path) -> None:
    findings = tuple(found(code, tmp_path))
    assert [Finding.from_json(json.loads(json.dumps(one.to_json()))) for one in findings] == list(findings)
    path = findings[0].filename
    cache = Cache(str(tmp_path / "caches"), str(tmp_path / "project"), "d")
    cache.put(path, "x", FileResult(findings))
    cache.save()
    cache.load()
    assert cache.get(path, "x", lambda other: "") == FileResult(findings)


def test_a_setting_names_its_options(tmp_path: Path) -> None:
    text = 'import os\n\nos.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segment:True,backend:native"\n'
    (finding,) = found_in(text, tmp_path)
    assert finding.claim == Claim("setting", device_only=True, options=("expandable_segment", "backend"))


def test_what_an_older_version_wrote_still_loads_and_gets_its_claim(tmp_path: Path) -> None:
    (finding,) = found("GPU201", tmp_path)
    data = finding.to_json()
    del data["subject"], data["claim"]
    old = Finding.from_json(data)
    assert (old.subject, old.claim, old.runtime_claim) == ("", None, DRIFT)
    own = replace(old, code="TEAM101")
    assert with_claims([old, own]) == [replace(old, claim=finding.claim), own]
    assert with_claims([finding]) == [finding]


def test_no_other_claims_are_read() -> None:
    with pytest.raises(ValueError, match="no claim of the kind"):
        Claim.from_json({"kind": "wishes"})
    everything = Claim("time", ("gc.collect",), True, True, ("backend",), True)
    assert Claim.from_json(everything.to_json()) == everything
    assert Claim("drift").to_json() == {"kind": "drift"}


class Watched:
    """As much of a harness as an ending asks for."""

    session = SimpleNamespace(frames=Frames("/project"), steps=0, sampled=0)
    looks = SimpleNamespace(look_at_end=lambda frames: None)
    ended: End | None = None

    def excused(self, message: str) -> None:
        pass

    def report(self, end: End) -> None:
        self.ended = end


@pytest.mark.parametrize(
    ("error", "asked", "refusal"),
    [
        (ValueError("No key 'x' in CUDA allocator config."), False, "No key 'x' in CUDA allocator config"),
        (SystemExit("Bad allocator setting. Stop."), False, "Bad allocator setting"),
        (EOFError("EOF when reading a line"), True, ""),
        (RuntimeError("the allocator is tired"), False, ""),
        (SystemExit(3), False, ""),
    ],
)
def test_what_an_exception_says_is_read_once_where_it_is_caught(
    error: BaseException, asked: bool, refusal: str, capsys: pytest.CaptureFixture[str]
) -> None:
    watched = Watched()
    failed(watched, error, module=False)
    assert (watched.ended.asked, watched.ended.refusal) == (asked, refusal)
    capsys.readouterr()


def test_the_names_that_a_line_calls_are_read_off_the_syntax_tree(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "model.register_forward_hook(self.save)  # not_this(one)\n"
        "loss = criterion(\n    net(x), 'nor(this)')\n"
        "def save(module):\n    total.add_(module.loss)[0].step()\n",
        encoding="utf-8",
    )
    named = {line: called_on(str(script), line) for line in range(1, 7)}
    assert named == {
        1: {"register_forward_hook", "save"},
        2: {"criterion"},
        3: {"net"},
        4: {"save"},
        5: {"add_", "loss", "step"},
        6: set(),
    }
    assert called_on(str(tmp_path / "none.py"), 1) == set()
