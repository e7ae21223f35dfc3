"""What torch-preflight says of the same workloads: `python benchmarks/forecast_preflight.py OUT.json`, where it is installed.

It takes a configuration, or reads one off a script; what it was given is written down. A model that it knows by name was named;
of some the class is named, which it builds itself; of the others the script is given. Its parts are allocated bytes except "CUDA_context" and "fragmentation".
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from forecast_truth import OPEN, SEALED

WORKLOADS = Path(__file__).resolve().parent / "forecast_workloads"
GIVEN: dict[str, list[str]] = {
    "gpt2_fp32": "--model gpt2 --seq-len 512 --optimizer adamw --dtype fp32 --flash".split(),
    "gpt2_bf16": "--model gpt2 --seq-len 1024 --optimizer adamw --dtype amp --flash".split(),
    "bert_lengths": "--model bert-base-uncased --seq-len 384 --optimizer adamw --dtype fp32 --flash".split(),
    "vit_b": "--model vit-base-patch16-224 --image-size 224 --optimizer adamw --dtype fp32 --flash".split(),
    "resnet50_amp": "--model resnet50 --image-size 224 --optimizer sgd-momentum --dtype amp".split(),
    "t5": "--model t5-base --seq-len 384 --optimizer adamw --dtype fp32".split(),
    "llama_1b": "--params 1.03B --seq-len 1024 --optimizer adamw --dtype pure-bf16 --checkpointing --flash".split(),
    "lora_1b": "--params 1.03B --seq-len 1024 --optimizer adamw --dtype pure-bf16 --flash".split(),
    "train_eval_save": "--model train_eval_save:Net --image-size 32 --optimizer adam --dtype fp32".split(),
    "unet_diffusion": "--model unet_diffusion:UNet --image-size 64 --optimizer adamw --dtype fp32".split(),
    "lstm": "--model lstm:Words --seq-len 35 --optimizer sgd --dtype fp32".split(),
}
NOT_ALLOCATED = ("CUDA_context", "fragmentation")


def estimate(name: str, batch: int) -> dict[str, Any]:
    """Its estimate, or what it says instead."""
    options = [*GIVEN.get(name, ()), "--batch-size", str(batch), "--gpu", "h200", "-f", "json"]
    command = [sys.executable, "-m", "torch_preflight", "estimate", str(WORKLOADS / f"{name}.py"), *options]
    path = os.pathsep.join([str(WORKLOADS), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        return {"given": options, "problem": (done.stderr or done.stdout).strip()[-400:]}
    if not found["resolved"]:
        return {"given": options, "problem": found["model"]["reason"]}
    parts = found["breakdown"]
    allocated = sum(size for part, size in parts.items() if part not in NOT_ALLOCATED)
    return {"given": options, "parts": parts, "total": found["total_bytes"], "allocated": allocated}


def main() -> None:
    told = {
        f"{name}-{batch}": estimate(name, batch)
        for table in (OPEN, SEALED)
        for name, batches in table.items()
        for batch in batches
    }
    runs = {key: one["allocated"] for key, one in told.items() if one.get("allocated")}
    Path(sys.argv[1]).write_text(json.dumps({"runs": runs, "told": told}, indent=1) + "\n")
    print(json.dumps({key: one.get("allocated", one.get("problem")) for key, one in told.items()}, indent=1))


if __name__ == "__main__":
    main()
