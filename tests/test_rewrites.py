"""What a program means decides what is told of it, and not how it is written: `benchmarks/rewrites.py` counts all, these stay."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest
from test_cases import all_cases

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"

# By a rewriting, programs that were told otherwise once they had been rewritten.
STEADY = {
    "argument": (
        "graph/GPU107_bug_ema_weights",
        "graph/GPU107_bug_own_versions_of_norm_layers",
        "outlives/GPU101_bug_record_by_setdefault",
        "outlives/GPU404_bug_copies_of_many_forms",
        "outlives/GPU404_ok_helper_computes_with_it",
        "reached/GPU107_bug_network_that_nothing_makes",
    ),
    "iterated": ("size/GPU102_bug_segmentation_masks",),
    "returned": ("grad/GPU201_bug_evaluations_of_many_forms",),
    "renamed": ("graph/GPU101_ok_sum_of_detached", "graph/GPU107_bug_ema_weights"),
    "imported": ("graph/GPU107_bug_ema_weights",),
}


@pytest.fixture
def rewrites(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("rewrites")


@pytest.mark.parametrize(("how", "name"), [(how, name) for how, names in STEADY.items() for name in names])
def test_the_same_is_told_however_it_is_written(rewrites: ModuleType, how: str, name: str) -> None:
    (case,) = (one for one in all_cases() if one.name == f"{name}.py")
    plain, other = rewrites.rewritten(case), rewrites.rewritten(case, how)
    assert other.text != plain.text
    assert rewrites.told(other) == rewrites.told(plain)
