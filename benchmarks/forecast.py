"""What the workloads of `forecast_workloads/` take on a GPU, and forecasts of the same, compared with it.

    python benchmarks/forecast.py measure TRUTH.json [--only NAME ...]          on a machine with a GPU
    python benchmarks/forecast.py compare TRUTH.json [--card h200] [--only NAME ...]      on any

`measure` runs each workload in a forked process of its own, so that the libraries are imported once. Figures are bytes: peak
allocated and reserved as torch counts them, and what the driver says that the process took (card in use at the end, less before).
`compare` forecasts the same runs and prints a table: figures in MiB, `!` where the truth is outside of the interval.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import re
import runpy
import statistics
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from _measure import HERE, documented, table, write

WORKLOADS = {  # and their batch sizes
    "mlp": (256, 1024), "resnet50_amp": (32, 64), "gpt2_fp32": (2, 4), "gpt2_bf16": (4, 8),
    "llama_1b": (1, 2), "bert_lengths": (8, 16), "lstm": (20, 64), "train_eval_save": (128, 256),
}  # fmt: skip
FIGURES = ("allocated", "reserved", "process")


# -- on a GPU ------------------------------------------------------------------------------------------------


def warm() -> None:
    """Import what the workloads import; nothing here may start CUDA, which does not survive a fork."""
    import torchvision.models  # noqa: F401
    from transformers import (  # noqa: F401
        BertForSequenceClassification,
        GPT2LMHeadModel,
        LlamaForCausalLM,
        get_linear_schedule_with_warmup,
    )


def measured(name: str, batch: int) -> dict[str, Any]:
    """Run one workload in this process."""
    import torch

    began = time.time()
    free, total = torch.cuda.mem_get_info()
    before = total - free
    path = str(script(name))
    sys.argv = [path, "--batch", str(batch)]
    error = ""
    try:
        runpy.run_path(path, run_name="__main__")
    except BaseException:
        error = last_error()
    # an error of a kernel comes up here again; the figures are worth having
    with contextlib.suppress(Exception):
        torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    stats = torch.cuda.memory_stats()
    return {
        "peak_allocated": stats["allocated_bytes.all.peak"],
        "peak_reserved": stats["reserved_bytes.all.peak"],
        "reserved_at_end": stats["reserved_bytes.all.current"],
        "used_before": before,
        "used_at_end": total - free,
        "seconds": round(time.time() - began, 1),
        "error": error,
    }


def script(name: str) -> Path:
    return HERE / "forecast_workloads" / f"{name}.py"


def last_error() -> str:
    """The end of the traceback, with files by their names alone."""
    return re.sub(r'File ".*/', 'File "', traceback.format_exc())[-800:]


def _child(pipe: Any, name: str, batch: int) -> None:
    try:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            pipe.send(measured(name, batch))
    except BaseException:
        pipe.send({"error": last_error()})
    pipe.close()
    os._exit(0)


def in_a_fork(name: str, batch: int) -> dict[str, Any]:
    """What `measured` says in a process of its own, or an `error` where it says nothing."""
    context = multiprocessing.get_context("fork")
    mine, its = context.Pipe()
    process = context.Process(target=_child, args=(its, name, batch))
    process.start()
    its.close()
    try:
        answer: dict[str, Any] = mine.recv() if mine.poll(90) else {"error": "no answer in 90 s"}
    except EOFError:
        answer = {"error": "died"}
    process.join(15)
    if process.is_alive():
        process.kill()
    return answer


def measure(out: Path, only: list[str]) -> None:
    warm()
    import torch

    found: dict[str, Any] = {"torch": torch.__version__, "runs": {}}
    for name, batches in WORKLOADS.items():
        for batch in batches if not only or name in only else ():
            answer = found["runs"][f"{name}-{batch}"] = in_a_fork(name, batch)
            print(name, batch, answer, flush=True)
            write(out, found)


# -- against a forecast --------------------------------------------------------------------------------------


def truth_of(run: dict[str, Any]) -> dict[str, int]:
    """The process's total is what torch reserved at most, and what the card held besides torch's memory at the end."""
    process = run["peak_reserved"] + run["used_at_end"] - run["reserved_at_end"]
    return {"allocated": run["peak_allocated"], "reserved": run["peak_reserved"], "process": process}


def compare(truth: Path, card: str, only: list[str]) -> None:
    from gpulint.forecasting.api import forecast
    from gpulint.forecasting.recorder import ForecastError

    rows = []
    errors: dict[str, list[float]] = {figure: [] for figure in FIGURES}
    for key, run in json.loads(truth.read_text(encoding="utf-8"))["runs"].items():
        name, _, batch = key.rpartition("-")
        if run.get("error") or (only and name not in only):
            continue
        begin = time.monotonic()
        try:
            told = forecast(script(name), ("--batch", batch), card=card)
        except ForecastError as error:
            print(key, error, file=sys.stderr, flush=True)
            continue
        row = [key]
        for figure, true in truth_of(run).items():
            said = getattr(told, figure)
            errors[figure].append(said.value / true - 1)
            outside = "" if said.low <= true <= said.high else " !"
            row += [f"{true >> 20}", f"{said.value >> 20}", f"{errors[figure][-1]:+.2%}{outside}"]
        rows.append([*row, f"{time.monotonic() - begin:.0f}"])
    figures = [f"{one}{what}" for one in FIGURES for what in ("", ", told", ", off")]
    print(table(("workload", *figures, "s"), rows))
    for figure, some in errors.items() if rows else ():
        sizes = [abs(error) for error in some]
        print(f"{figure:<9} mean {statistics.mean(sizes):.2%}, worst {max(some, key=abs):+.2%}")


def main() -> None:
    parser = documented(__doc__)
    parser.add_argument("what", choices=("measure", "compare"))
    parser.add_argument("truth", type=Path)
    parser.add_argument("--card", default="h200")
    parser.add_argument("--only", nargs="*", default=[], choices=WORKLOADS)
    given = parser.parse_args()
    if given.what == "measure":
        measure(given.truth, given.only)
    else:
        compare(given.truth, given.card, given.only)


if __name__ == "__main__":
    main()
