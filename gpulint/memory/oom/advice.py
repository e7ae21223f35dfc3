"""What to do about an out-of-memory error: what settles the question, then what gained most where it was measured.

Figures are from an NVIDIA H200 with torch 2.11: a 4-layer transformer language model, and batches of varying
length for the allocator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to do. `measured` is what it gained where it was measured, "" where it was not."""

    text: str
    measured: str = ""

    def __str__(self) -> str:
        return f"{self.text} ({self.measured})" if self.measured else self.text


METAL: Final = Advice(
    "`PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0` takes the limit away: macOS then swaps, and may end the process"
)


def _advice(*listed: str) -> tuple[Advice, ...]:
    """Each with what it gained behind a bar, where it was measured."""
    return tuple(Advice(*one.split(" | ")) for one in listed)


_CAPACITY: Final = _advice(
    # Whether it grows decides what else helps.
    "run some steps under `gpulint verify`: it tells whether something grows by the step, and who holds it, or whether the"
    " first step is too large already",
    "run validation and inference under `torch.no_grad()` | peak 1.56 -> 1.15 GiB",
    "in evaluation loops, `del` outputs after their last use | peak -42 %",
    "call backward for each micro-batch, not once for their sum | peak -30 %",
    "`del` large outputs (logits) after their last use, before `backward()` | peak -17 %",
    "run teachers and frozen networks under `torch.no_grad()` | peak -11 %",
    "find such places with `gpulint`",
    "then: a smaller batch with gradient accumulation, bfloat16 autocast, activation checkpointing",
)

# By the kind of an error; what to do first stands first.
FOR: Final[dict[str, tuple[Advice, ...]]] = {
    "fragmentation": _advice(
        "turn on expandable segments: `gpulint run --alloc-conf auto -- ...`, or"
        " `memory.configure(expandable_segments=True)` before CUDA starts"
        " | reserved 22.4 -> 6.4 GiB for the same 5.3 GiB of tensors",
        "with batches of varying length, run the longest one first, so that later ones fit its blocks",
        "or set `garbage_collection_threshold:0.8` together with a memory limit",
        "leave max_split_size_mb alone, also where the message suggests it"
        " | `max_split_size_mb:128` reserved 106 GiB where the default took 22.4 GiB",
    ),
    "shape": _advice(
        "print the shapes at the line that raised: `(N,)` against `(N, 1)` broadcasts to `(N, N)`, a size may stand"
        " where an index was meant, and a flattened batch may count twice",
        'try the line under `with torch.device("meta"):`, which allocates nothing, and read the shape it gives',
        "a smaller batch, allocator settings or an emptied cache cannot make room for it",
    ),
    "capacity": _CAPACITY,
    "other-processes": _advice(
        "see who holds the card with `gpulint gpu`; end a forgotten process of yours with `gpulint gpu kill PID`",
        "or choose another card with CUDA_VISIBLE_DEVICES",
        "clearing caches from a second process cannot help: a cache belongs to the process that filled it",
    ),
    "limit": (
        *_advice("raise the limit that this process set (`set_per_process_memory_fraction`, `memory.limit`)"),
        *_CAPACITY[:5],
    ),
    "library": (
        *_advice(
            "leave room beside the caching allocator, for example `memory.limit(0.95)`: libraries allocate outside it"
        ),
        *_CAPACITY[:5],
    ),
    "host": _advice(
        "this is the host's memory, not the GPU's: look for values held with their graph (`total += loss`)",
        "fewer DataLoader workers, a smaller prefetch_factor, `torch.load(..., mmap=True)` for large checkpoints",
        "`gpulint verify` shows host memory that grows by the step, and what holds it",
    ),
    "unclear": (
        *_advice(
            "look at the card while it happens with `gpulint gpu --watch`: something else may take memory for moments",
            "run under `gpulint run`, which records the allocator's figures up to the error",
            "on Windows the driver needs as much host memory (page file) as it gives of the card's",
        ),
        *_CAPACITY[:5],
    ),
}

# -- what the traceback says ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cause:
    """What was going on when memory ran out, by the library's functions that a traceback passes through: `what` as it follows
    "raised", and what helps then. `files` are parts of their paths."""

    what: str
    files: str
    functions: str
    helps: str

    def is_in(self, file: str, function: str) -> bool:
        return function in self.functions.split() and any(part in file for part in self.files.split())


# The first that fits counts: an optimizer's state is copied by `deepcopy` while it is loaded.
_CAUSES: Final = (
    Cause(
        "where a trainer gathers an evaluation's outputs on the card",
        "transformers/trainer_pt_utils.py accelerate/utils/operations.py",
        "nested_concat torch_pad_and_concatenate nested_new_like _gpu_gather pad_across_processes",
        "the evaluation keeps every batch's outputs on the card: `eval_accumulation_steps=1` moves them to the host,"
        " `preprocess_logits_for_metrics` (say `argmax`) makes them small, `prediction_loss_only=True` keeps none (GPU108)",
    ),
    Cause(
        "where a metric gathers what its updates kept",
        "torchmetrics/",
        "dim_zero_cat gather_all_tensors",
        "a metric with list states keeps every batch on the card until it is reset: `compute_on_cpu=True`, or one with sums",
    ),
    Cause(
        "while a checkpoint is loaded",
        "torch/serialization.py torch/storage.py torch/jit/_serialization.py",
        "load _load _legacy_load persistent_load load_tensor restore_location _cuda_deserialize _deserialize",
        '`torch.load(path, map_location="cpu")`: without it the checkpoint comes back to the card that it was saved from, beside'
        " the weights and under every rank alike (GPU403)",
    ),
    Cause(
        "where a state is loaded into an optimizer",
        "torch/optim/optimizer.py",
        "load_state_dict _process_value_of_param_state _cast",
        'load the checkpoint with `map_location="cpu"`, let `load_state_dict` move it, then `del` the checkpoint: the state is'
        " twice as large as the weights under Adam, and for a moment it is there twice (GPU403)",
    ),
    Cause(
        "where a state is loaded into a network",
        "torch/nn/modules/module.py",
        "load_state_dict _load_from_state_dict",
        'load the checkpoint with `map_location="cpu"` and `del` it after `load_state_dict` (GPU403)',
    ),
    Cause(
        "in `generate`",
        "transformers/generation/",
        "generate _sample _beam_search greedy_search sample beam_search contrastive_search",
        "`generate` keeps keys and values of every token, layer and beam: fewer prompts at once, a smaller `max_new_tokens` or"
        ' `num_beams`, `cache_implementation="offloaded"`; a growth from call to call is a cache or output that is kept',
    ),
    Cause(
        "where the outputs of all cards are gathered on the first",
        "torch/nn/parallel/scatter_gather.py torch/nn/parallel/comm.py torch/nn/parallel/_functions.py",
        "gather gather_map",
        "`DataParallel` gathers the outputs on the first card: return the loss from `forward`, or use DistributedDataParallel",
    ),
    Cause(
        "where the whole state of a sharded network is gathered",
        "torch/distributed/fsdp/ torch/distributed/checkpoint/",
        "_full_post_state_dict_hook _common_unshard_post_state_dict_hook _full_pre_state_dict_hook full_tensor _gather_state_dict",
        "gather it to the host: `StateDictOptions(full_state_dict=True, cpu_offload=True)` (`offload_to_cpu` of FSDP1), or save shards",
    ),
    Cause(
        "in a copy of something",
        "/copy.py",
        "deepcopy _deepcopy_dict _deepcopy_list _reconstruct",
        "a copy of a network on the card takes what the network takes: copy its `state_dict()` to the host (GPU404)",
    ),
    Cause(
        "where the optimizer makes its state, in its first step",
        "torch/optim/",
        "_init_group",
        "what comes with the first step stays: Adam's state is twice the weights in their type; 8-bit or paged optimizers, a sharded"
        " one (ZeRO, FSDP), or fewer trained weights make it smaller",
    ),
    Cause(
        "where a network is put on the card",
        "torch/nn/modules/module.py",
        "_apply",
        "the weights alone do not fit: cast before they are moved (`torch_dtype`, `.to(device, dtype)`; GPU407), build them in"
        " their type, or shard them",
    ),
)


def cause_of(frames: Sequence[tuple[str, str]]) -> Cause | None:
    """The cause that a traceback's frames (file and function) show; None where they show none."""
    paths = [(file.replace("\\", "/"), function.rpartition(".")[2]) for file, function in frames]
    return next((cause for cause in _CAUSES if any(cause.is_in(*frame) for frame in paths)), None)
