"""Leaks planted in public training scripts: does the verifier find each at the window in which it grows, and name its holder?

    python benchmarks/planted.py run CHECKOUTS OUT.json [--device cpu|cuda] [--jobs 2] [--only NAME]
    python benchmarks/planted.py list        # which repositories at which commits

Ten scripts that were not used while the verifier was written, each four times at default options: as it is, and with one
leak of three. The first keeps something in each *step*, the second in each *pass* (an evaluation, an epoch, a report
every so many steps), the third keeps the network of each *trial*, in a sweep that runs the script several times. A leak is
found where the exit status is 1 and what the report says to grow has the planted name. The scripts as they are must end with 0.

CHECKOUTS has a folder `owner+name` for each repository. Scripts run in fresh copies with synthetic data and stand-ins, as in
`public_scripts.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import torch  # noqa: E402
from _measure import hardware, table  # noqa: E402
from _scripts import Loop, Script  # noqa: E402
from public_scripts import Bench, described, last_line  # noqa: E402

from gpulint import __version__  # noqa: E402

HOLDERS = {"none": "", "step": "kept_steps", "pass": "kept_passes", "trial": "kept_trials"}
TRIALS = 4
SWEEP = "sweep.py"
# Each trial runs the whole script again; what it trained goes into a list of a module that outlives it.
_SWEEP = """import runpy
import sys

for trial in range({trials}):
    sys.argv = ["{script}", *{arguments}]
    runpy.run_path("{script}", run_name="__main__")
"""


@dataclass(frozen=True, slots=True)
class Plant:
    """After the line `after` of `file` the statement `keep`, with its indentation: a list grows."""

    file: str
    after: str
    keep: str


@dataclass(frozen=True, slots=True)
class Planted(Script):
    """A script with text edits that make it small, and the leak of this copy. `original` is the script that a sweep runs."""

    edits: tuple[tuple[str, str, str], ...] = ()  # file, text, other text
    plants: tuple[Plant, Plant, Plant] | tuple[()] = ()  # for a step, a pass, a trial
    leak: str = "none"
    original: str = ""

    def planted(self, leak: str) -> Planted:
        """The copy with this leak: none, step, pass or trial."""
        script = SWEEP if leak == "trial" else self.script
        return replace(self, leak=leak, script=script, original=self.script, name=f"{self.name} {leak}")

    @property
    def holder(self) -> str:
        """What the report must name."""
        return HOLDERS[self.leak]

    def command(self, device: str, loop: Loop | None = None) -> tuple[str, ...]:
        """A sweep gives the script its arguments itself."""
        return () if self.leak == "trial" else Script.command(self, device, loop)

    def prepare(self, checkouts: Path, copy: Path, loop: Loop | None = None) -> Path:
        """A fresh copy, made small, with its leak."""
        home = Script.prepare(replace(self, script=self.original), checkouts, copy, loop)
        for file, text, other in self.edits:
            _edit(home / file, text, other)
        if self.leak == "none":
            return home
        plant = self.plants[("step", "pass", "trial").index(self.leak)]
        _edit(home / plant.file, f"{plant.after}\n", f"{plant.after}\n{plant.keep}\n")
        (home / "kept.py").write_text(f"{self.holder} = []\n", encoding="utf-8")
        _head(home / plant.file, f"from kept import {self.holder}\n")
        if self.leak == "trial":
            text = _SWEEP.format(trials=TRIALS, script=self.original, arguments=list(self.arguments))
            (home / SWEEP).write_text(text, encoding="utf-8")
        return home


def _edit(file: Path, text: str, other: str) -> None:
    """Put `other` in the place of `text`."""
    source = file.read_text(encoding="utf-8")
    assert text in source, f"{file.name} has no {text!r}"
    file.write_text(source.replace(text, other), encoding="utf-8")


def _head(file: Path, line: str) -> None:
    """A line before the first import that is not of `__future__`."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    number = next(
        i
        for i, text in enumerate(lines)
        if text.startswith(("import ", "from ")) and "__future__" not in text
    )
    file.write_text("".join((*lines[:number], line, *lines[number:])), encoding="utf-8")


def _folder(at: Path, name: str) -> None:
    (at / name).mkdir(parents=True, exist_ok=True)


# -- the table -----------------------------------------------------------------------------------------------

_VISION = ("torchvision", "matplotlib")
_ODE = ("rtqichen/torchdiffeq", "657943acefa826ef04c025ebeb1ff5e9d60dc268")

SCRIPTS: tuple[Planted, ...] = (
    Planted(
        "pytorch-cifar",
        "kuangliu/pytorch-cifar",
        "49b7aa97b0c12fe0d4054e670403a16b6b834ddd",
        "main.py",
        standins=_VISION,
        images=(1280, 400),
        edits=(
            ("main.py", "net = SimpleDLA()", "net = LeNet()"),
            ("main.py", "start_epoch+200", "start_epoch+4"),
            ("utils.py", "_, term_width = os.popen('stty size', 'r').read().split()", "term_width = 80"),
        ),
        plants=(
            Plant("main.py", "        train_loss += loss.item()", "        kept_steps.append(inputs)"),
            Plant("main.py", "    acc = 100.*correct/total", "    kept_passes.append(inputs + 0)"),
            Plant("main.py", "net = net.to(device)", "kept_trials.append(net)"),
        ),
    ),
    Planted(
        "VRNN",
        "emited/VariationalRecurrentNeuralNetwork",
        "0f23c87d11597ecf50ecbbf1dd37429861fd7aca",
        "train.py",
        standins=_VISION,
        images=(640, 192),
        data=partial(_folder, name="saves"),
        edits=(
            ("train.py", "batch_size = 8 #128", "batch_size = 64"),
            ("train.py", "n_epochs = 25", "n_epochs = 4"),
        ),
        plants=(
            Plant("train.py", "        train_loss += loss.item()", "        kept_steps.append(data)"),
            Plant(
                "train.py", "    mean_nll_loss /= len(test_loader.dataset)", "    kept_passes.append(data)"
            ),
            Plant("train.py", "model = model.to(device)", "kept_trials.append(model)"),
        ),
    ),
    Planted(
        "grokking",
        "danielmamay/grokking",
        "9988f8d42bb1edcb54ae7c584cea46dcced16721",
        "cli.py",
        ("--num_steps", "60", "--dim_model", "64"),
        cwd="grokking",
        standins=("wandb",),
        needs=("einops", "tqdm"),
        edits=(("training.py", "step % 100 == 0", "step % 10 == 0"),),
        plants=(
            Plant("training.py", "    loss.backward()", "    kept_steps.append(output)"),
            Plant(
                "training.py",
                "        output = model(val_inputs)[-1, :, :]",
                "        kept_passes.append(output)",
            ),
            Plant("training.py", "    n_train = len(train_inputs)", "    kept_trials.append(model)"),
        ),
    ),
    Planted(
        "schedule_free mnist",
        "facebookresearch/schedule_free",
        "70785b53e778d0e872c0bbb75ff4ee54ee10c291",
        "main.py",
        ("--epochs", "4", "--test-batch-size", "100", "--log-interval", "5"),
        cwd="examples/mnist",
        path=("",),
        standins=_VISION,
        images=(640, 300),
        plants=(
            Plant("main.py", "        loss.backward()", "        kept_steps.append(data)"),
            Plant("main.py", "    test_loss /= len(test_loader.dataset)", "    kept_passes.append(data)"),
            Plant("main.py", "    model = Net().to(device)", "    kept_trials.append(model)"),
        ),
    ),
    Planted(
        "x-transformers copy",
        "lucidrains/x-transformers",
        "9252ed7838021ee61e6c5be0930b3a9a88efdf06",
        "train_copy.py",
        path=("",),
        needs=("einops", "einx", "loguru", "tqdm", "torch_einops_utils"),
        edits=(
            ("train_copy.py", "NUM_BATCHES = int(1e5)", "NUM_BATCHES = 36"),
            ("train_copy.py", "GENERATE_EVERY  = 100", "GENERATE_EVERY  = 5"),
            ("train_copy.py", "BATCH_SIZE = 32", "BATCH_SIZE = 8"),
        ),
        plants=(
            Plant(
                "train_copy.py", "    optim.zero_grad()", "    kept_steps.append(loss.expand(40_000).clone())"
            ),
            Plant(
                "train_copy.py",
                "        start_tokens = (torch.ones((1, 1)) * 1).long().to(DEVICE)",
                "        kept_passes.append({name: value.clone() for name, value in model.state_dict().items()})",
            ),
            Plant("train_copy.py", "# optimizer", "kept_trials.append(model)"),
        ),
    ),
    Planted(
        "torchdiffeq ode_demo",
        *_ODE,
        "ode_demo.py",
        ("--niters", "40", "--test_freq", "5", "--data_size", "200"),
        cwd="examples",
        path=("",),
        plants=(
            Plant(
                "ode_demo.py",
                "        loss_meter.update(loss.item())",
                "        kept_steps.append(pred_y.repeat(50, 1, 1, 1))",
            ),
            Plant(
                "ode_demo.py",
                "                pred_y = odeint(func, true_y0, t)",
                "                kept_passes.append(pred_y.repeat(100, 1, 1))",
            ),
            Plant(
                "ode_demo.py",
                "    func = ODEFunc().to(device)",
                "    kept_trials.append(true_y.repeat(100, 1, 1))",
            ),
        ),
    ),
    Planted(
        "torchdiffeq latent_ode",
        *_ODE,
        "latent_ode.py",
        ("--niters", "36"),
        cwd="examples",
        path=("",),
        standins=("matplotlib",),
        plants=(
            Plant(
                "latent_ode.py",
                "            loss_meter.update(loss.item())",
                "            kept_steps.append(pred_z)",
            ),
            Plant(
                "latent_ode.py",
                "            loss_meter.update(loss.item())",
                "            if itr % 4 == 0:\n                kept_passes.append(pred_x.detach())",
            ),
            Plant(
                "latent_ode.py",
                "    samp_ts = torch.from_numpy(samp_ts).float().to(device)",
                "    kept_trials.append(samp_trajs)",
            ),
        ),
    ),
    Planted(
        "VAE-CVAE-MNIST",
        "timbmg/VAE-CVAE-MNIST",
        "4f1b22367a5c5cff88bf97ce78219132aa9fd977",
        "train.py",
        ("--epochs", "5", "--print_every", "10"),
        standins=(*_VISION, "seaborn"),
        needs=("pandas",),
        images=(640, 64),
        plants=(
            Plant(
                "train.py",
                "            logs['loss'].append(loss.item())",
                "            kept_steps.append(recon_x)",
            ),
            Plant(
                "train.py",
                "        df = pd.DataFrame.from_dict(tracker_epoch, orient='index')",
                "        kept_passes.append(recon_x.detach())",
            ),
            Plant("train.py", "    logs = defaultdict(list)", "    kept_trials.append(vae)"),
        ),
    ),
    Planted(
        "vector-quantize autoencoder",
        "lucidrains/vector-quantize-pytorch",
        "0d7d1aa83334b6f2f8a40306bece75cdaa13d065",
        "autoencoder.py",
        cwd="examples",
        path=("",),
        standins=(*_VISION, "fire"),
        needs=("einops", "einx", "tqdm"),
        images=(512, 64),
        edits=(
            ("autoencoder.py", "train_iter = 1000", "train_iter = 36"),
            ("autoencoder.py", "batch_size = 256", "batch_size = 64"),
        ),
        plants=(
            Plant("autoencoder.py", "        opt.step()", "        kept_steps.append(out)"),
            Plant(
                "autoencoder.py",
                "            except StopIteration:",
                "                kept_passes.append(x.to(device) + 0)",
            ),
            Plant(
                "autoencoder.py",
                "    opt = AdamW(model.parameters(), lr = lr)",
                "    kept_trials.append((model, opt))",
            ),
        ),
    ),
    Planted(
        "minRF",
        "cloneofsimo/minRF",
        "4fc10e0cc8ba976152c7936a1af9717209f03e18",
        "rf.py",
        standins=(*_VISION, "wandb"),
        needs=("PIL", "tqdm"),
        images=(256, 32),
        data=partial(_folder, name="contents"),
        edits=(
            ("rf.py", ".cuda()", ".to('cuda' if torch.cuda.is_available() else 'cpu')"),
            ("dit.py", "drop_ids.cuda()", "drop_ids.to(labels.device)"),
            ("rf.py", "batch_size=256", "batch_size=32"),
            ("rf.py", "dim=64, n_layers=6", "dim=64, n_layers=2"),
            ("rf.py", "sample_steps=50", "sample_steps=3"),
            ("rf.py", "range(100)", "range(4)"),
        ),
        plants=(
            Plant("rf.py", "            optimizer.step()", "            kept_steps.append(x)"),
            Plant("rf.py", "            last_img = gif[-1]", "            kept_passes.append(images[-1])"),
            Plant("rf.py", "    criterion = torch.nn.MSELoss()", "    kept_trials.append(model)"),
        ),
    ),
)


# -- judging -------------------------------------------------------------------------------------------------


def one(bench: Bench, script: Planted) -> dict[str, Any]:
    """One copy under the verifier, beside the plain run where nothing is planted, and what is wrong with it."""
    record: dict[str, Any] = {**described(script, bench.device), "leak": script.leak}
    if script.leak == "none":
        plain = bench.run(script, watch=False)
        if plain.status:
            return {**record, "problem": f"fails without gpulint: {last_line(plain.errors)}"}
    watched = bench.run(script, watch=True)
    assert watched.watched is not None
    record["watched"] = {**watched.watched, "wall": round(watched.seconds, 2)}
    return {**record, "problem": _problem(script, watched.watched)}


def _problem(script: Planted, told: Mapping[str, Any]) -> str:
    if script.leak == "none":
        return (
            "" if told["exit_code"] == 0 else f"status {told['exit_code']}: {_grows(told) or told['message']}"
        )
    if told["exit_code"] != 1:
        return f"status {told['exit_code']}: {told['message']}"
    return "" if script.holder in _grows(told) else f"the holder is not named: {_grows(told)}"


def _grows(told: Mapping[str, Any]) -> str:
    confirmed = [v["text"] for v in told["verdicts"] if v["status"] == "confirmed"]
    return "; ".join((*confirmed, *(u["text"] for u in told["unpredicted"])))


def shown(records: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (r["name"], str(r.get("watched", {}).get("exit_code", "")), r["problem"] or "as it should be")
        for r in records
    ]
    return table(("script and leak", "status", "what came of it"), rows)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("run", "list"))
    parser.add_argument("checkouts", nargs="?", type=Path)
    parser.add_argument("out", nargs="?", type=Path)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if options.what == "list":
        print("\n".join(f"{s.repository} {s.commit} {s.cwd or '.'}/{s.script}" for s in SCRIPTS))
        return 0
    wanted = [s.planted(leak) for s in SCRIPTS for leak in HOLDERS]
    wanted = [script for script in wanted if options.only in script.name]
    records: list[dict[str, Any]] = []
    head = {
        "hardware": hardware(),
        "gpu": torch.cuda.get_device_name() if options.device == "cuda" else None,
        "torch": torch.__version__,
        "gpulint": __version__,
        "device": options.device,
    }
    with tempfile.TemporaryDirectory(prefix="planted-") as folder, ThreadPoolExecutor(options.jobs) as pool:
        bench = Bench(options.checkouts.resolve(), options.device, {}, Path(folder))
        for record in pool.map(partial(one, bench), wanted):
            records.append(record)  # written at once: a machine may be taken away
            print(f"{record['name']}: {record['problem'] or 'as it should be'}", flush=True)
            data = {**head, **counted(records), "scripts": records}
            options.out.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    counts = counted(records)
    print(shown(records))
    print(
        f"{counts['found']} of {counts['planted']} planted leaks found with their holder; "
        f"{counts['not_clean']} of the scripts as they are not clean"
    )
    return 0 if counts["found"] == counts["planted"] and not counts["not_clean"] else 1


def counted(records: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many leaks were planted and found, and how many scripts without one did not come out clean."""
    leaks = [r for r in records if r["leak"] != "none"]
    return {
        "planted": len(leaks),
        "found": sum(not r["problem"] for r in leaks),
        "not_clean": sum(bool(r["problem"]) for r in records if r["leak"] == "none"),
    }


if __name__ == "__main__":
    sys.exit(main())
