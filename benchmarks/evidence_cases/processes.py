"""Cases that need a process each: allocator settings (GPU601), settings made too late (GPU602) or wrongly (GPU604)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from evidence_cases.setup import LanguageModel, Size

VARIABLE = "PYTORCH_CUDA_ALLOC_CONF"
GIB = 2**30


@dataclass(frozen=True)
class Training:
    """Training on batches of varying length in a process of its own. `limit` is in bytes, 0 for none."""

    setting: str = ""
    longest_first: bool = False
    limit: int = 0


Measure = Callable[[str, Size, int], dict[str, Any]]


@dataclass(frozen=True)
class ProcessCase:
    """A case whose variants are measured by starting processes; `measure` gets device, size and steps."""

    code: str
    title: str
    measure: Measure


# -- GPU601 --------------------------------------------------------------------------------------------------

# In the child, which must not start CUDA before the setting is in its environment.
CHILD = "import sys; sys.path[:0] = sys.argv[1:3]; from evidence_cases import processes; processes.train()"


def train() -> None:
    """In the child: train as the arguments say and print the figures."""
    device, size, steps, training = json.loads(sys.argv[3])
    print(json.dumps(trained(device, Size(**size), steps, Training(**training))))


def trained(device: str, size: Size, steps: int, training: Training) -> dict[str, Any]:
    """Train `steps` steps, or until memory runs out. Without CUDA there is no memory to tell."""
    on_gpu = device == "cuda"
    if on_gpu and training.limit:
        torch.cuda.set_per_process_memory_fraction(
            training.limit / torch.cuda.get_device_properties(0).total_memory
        )
    torch.manual_seed(0)
    model = LanguageModel(size).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    longest = 2 * size.length
    lengths = torch.randint(longest // 16, longest, (steps,)).tolist()
    if training.longest_first:
        lengths.sort(reverse=True)
    begin, done = time.perf_counter(), 0
    try:
        for length in lengths:
            tokens = torch.randint(0, size.vocabulary, (size.batch, length), device=device)
            logits = model(tokens)
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done += 1
    except torch.OutOfMemoryError:
        pass
    if on_gpu:
        torch.cuda.synchronize()
    notes = {}
    if training.limit:
        retries = torch.cuda.memory_stats()["num_alloc_retries"] if on_gpu else 0
        notes = {"allocations retried, retries": retries, "steps done, steps": done}
    return {
        "drift": 0.0,
        "peak": torch.cuda.max_memory_allocated() if on_gpu else None,
        "reserved": torch.cuda.max_memory_reserved() if on_gpu else None,
        "ms": 1000 * (time.perf_counter() - begin) / max(1, done),
        "notes": notes,
    }


def environment(setting: str) -> dict[str, str]:
    """This process's own environment with no allocator setting but this one."""
    names = (VARIABLE, "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
    found = {name: value for name, value in os.environ.items() if name not in names}
    return {**found, VARIABLE: setting} if setting else found


def trainings(variants: Mapping[str, Training], device: str, size: Size, steps: int) -> dict[str, Any]:
    """A child after the other: each may need the whole card."""
    here = Path(__file__).resolve().parent.parent
    found: dict[str, Any] = {}
    for name, training in variants.items():
        told = json.dumps([device, asdict(size), steps, asdict(training)])
        done = subprocess.run(
            [sys.executable, "-c", CHILD, str(here), str(here.parent), told],
            env=environment(training.setting), capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            found[name] = json.loads(done.stdout.splitlines()[-1])
        else:
            found[name] = {"error": done.stderr.strip().splitlines()[-1:] or [""]}
    return found


# -- GPU602, GPU604: what torch makes of a setting -----------------------------------------------------------

TAKEN = """
import os, sys
device, name, value = sys.argv[1:]
import torch
{before}
os.environ[name] = value
try:
    torch.zeros(1, device=device)
except Exception:
    if name != "CUDA_VISIBLE_DEVICES":
        raise
    print("taken")  # with an empty list there is no device left
    sys.exit()
if device == "cuda" and name != "CUDA_VISIBLE_DEVICES":
    settings = torch.cuda.memory._snapshot()["allocator_settings"]
    print("taken" if settings["expandable_segments"] else "ignored")
else:
    print("ignored")
"""
BEFORE = {
    "nothing": "",
    **{
        f"torch.{call}": f"torch.{call}"
        for call in (
            "cuda.is_available()", "cuda.device_count()", "cuda.manual_seed(0)", "cuda.set_device(0)",
            "cuda.get_device_name()", "zeros(1).to(device)",
        )
    },
}  # fmt: skip
EXPANDABLE = "expandable_segments:True"
LATE = {
    EXPANDABLE: (VARIABLE, EXPANDABLE),
    "CUDA_VISIBLE_DEVICES": ("CUDA_VISIBLE_DEVICES", ""),
    "backend:cudaMallocAsync": (VARIABLE, "backend:cudaMallocAsync"),
}

STARTED = """
import sys
import torch
torch.zeros(1, device=sys.argv[1])
print("accepted")
"""
# Settings as people misspell them; GPU604 reports each.
MISSPELT = (
    "expandable_segment:True", "expandable_segments:true", "expandable_segments=True",
    "expandable_segments:1", "expandable_segments", "expandable-segments:True", "max_split_size:128",
    "max_split_size_mb:0", "max_split_size_mb=128", "max_split_size_mb:8", "garbage_collection_threshold:80",
    "garbage_collect_threshold:0.8", "garbage_collection_threshold:1.5", "backend:cudamallocasync",
    "backend:async", "roundup_power2_divisions:3", "roundup_power2_division:8", "preallocate:True",
)  # fmt: skip


def outcome(source: str, arguments: Sequence[str], variables: dict[str, str]) -> str:
    """Run a short program: its last word, "error: …", or "abort" where the interpreter was killed by a signal."""
    done = subprocess.run(
        [sys.executable, "-c", source, *arguments],
        env=variables, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    if done.returncode < 0:
        return "abort"
    if done.returncode > 0:
        return f"error: {(done.stderr.strip().splitlines() or [''])[-1][:200]}"
    return (done.stdout.split() or [""])[-1]


def outcomes(jobs: Mapping[str, tuple[str, Sequence[str], dict[str, str]]]) -> dict[str, str]:
    """Several at a time: nothing is measured but how they end."""
    with ThreadPoolExecutor(max(1, min(8, (os.cpu_count() or 1) // 2))) as pool:
        return dict(zip(jobs, pool.map(lambda job: outcome(*job), jobs.values()), strict=True))


def late(name: str, value: str, device: str, size: Size, steps: int) -> dict[str, Any]:
    """A setting made after CUDA was asked for, or started, in one way or another."""
    jobs = {
        before: (TAKEN.format(before=call), (device, name, value), environment(""))
        for before, call in BEFORE.items()
    }
    found: dict[str, Any] = {}
    for before, text in outcomes(jobs).items():
        failed = text.startswith(("error", "abort"))
        notes = {"taken, number": int(text == "taken"), "failed, errors": int(failed)}
        found[before] = {"notes": notes, "outcomes": {before: text}}
    return found


def misspelt(device: str, size: Size, steps: int) -> dict[str, Any]:
    """Each misspelt setting in a program that starts CUDA."""
    found = outcomes({text: (STARTED, (device,), environment(text)) for text in MISSPELT})
    notes = {
        "tried, settings": len(found),
        "ended in an error, errors": sum(text != "accepted" for text in found.values()),
        "of them by a signal, aborts": sum(text == "abort" for text in found.values()),
    }
    return {"misspelt": {"notes": notes, "outcomes": found}}


# -- GPU603 --------------------------------------------------------------------------------------------------

OLD = """
import json, warnings
import torch

def warns(call):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            call()
        except Exception:  # without CUDA some fail, after their warning
            pass
    return any(issubclass(w.category, (FutureWarning, DeprecationWarning)) for w in seen)

calls = {
    "torch.cuda.memory_cached": lambda: torch.cuda.memory_cached(),
    "torch.cuda.max_memory_cached": lambda: torch.cuda.max_memory_cached(),
    "torch.cuda.reset_max_memory_allocated": lambda: torch.cuda.reset_max_memory_allocated(),
    "torch.cuda.reset_max_memory_cached": lambda: torch.cuda.reset_max_memory_cached(),
    "torch.cuda.amp.autocast": lambda: torch.cuda.amp.autocast(),
    "torch.cpu.amp.autocast": lambda: torch.cpu.amp.autocast(),
    "torch.cuda.amp.GradScaler": lambda: torch.cuda.amp.GradScaler(),
    "torch.cuda.amp.custom_fwd": lambda: torch.cuda.amp.custom_fwd(lambda ctx: None),
    "torch.cuda.amp.custom_bwd": lambda: torch.cuda.amp.custom_bwd(lambda ctx: None),
}
print(json.dumps({name: warns(call) for name, call in calls.items()}, separators=(",", ":")))
"""


def old_names(device: str, size: Size, steps: int) -> dict[str, Any]:
    """Which of the deprecated names warn."""
    text = outcome(OLD, (), environment(""))
    if text.startswith(("error", "abort")):
        return {"called": {"error": [text]}}
    found = json.loads(text)
    notes = {"called, names": len(found), "warned, warnings": sum(found.values())}
    return {"called": {"notes": notes, "outcomes": {name: str(warned) for name, warned in found.items()}}}


# Twice what the tensors of the longest batches need would fit; the default allocator wants more.
LIMIT = 8 * GIB
BOTH = f"{EXPANDABLE},max_split_size_mb:128"
THRESHOLD = "garbage_collection_threshold:0.8"

VARYING: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {  # settings, and what else the trainings have
    "": (("", EXPANDABLE, "max_split_size_mb:128", BOTH, "roundup_power2_divisions:8"), {}),
    ", larger split sizes": (("max_split_size_mb:512", "max_split_size_mb:1024"), {}),
    ", the longest first": (("",), {"longest_first": True}),
    " under a limit of 8 GiB": (("", EXPANDABLE, BOTH, THRESHOLD), {"limit": LIMIT}),
}


def _varying(settings: Sequence[str], options: Mapping[str, Any]) -> Measure:
    return partial(trainings, {text or "default": Training(text, **options) for text in settings})


CASES = [
    *(
        ProcessCase("GPU601", f"variable-length batches{what}", _varying(*told))
        for what, told in VARYING.items()
    ),
    *(ProcessCase("GPU602", f"{what} set late", partial(late, *told)) for what, told in LATE.items()),
    ProcessCase("GPU603", "deprecated names", old_names),
    ProcessCase("GPU604", "misspelt settings", misspelt),
]
