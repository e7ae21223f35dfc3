"""Out-of-memory messages of every torch since 1.0: what they say, and what is made of it."""

import json

import oom_messages as said
import pytest

from gpulint.memory.oom import Diagnosis, diagnose
from gpulint.memory.oom.messages import OomMessage, parse_message
from gpulint.units import parse_bytes

MIB = 1024**2
GIB = 1024**3


def gib(value: float) -> int:
    return round(value * GIB)


def mib(value: float) -> int:
    return round(value * MIB)


def parsed(text: str) -> OomMessage:
    found = parse_message(text)
    assert found is not None
    return found


def diagnosed(text: str, **more) -> Diagnosis:
    return diagnose(parsed(text), **more)


# Message, kind of error, and what is read: requested, device, total, free, allocated, cached, process, allowed
TABLE = """
TORCH_1_1            capacity        48MiB   0 7.93GiB   19MiB     6.71GiB    143.2MiB         -        -
TORCH_1_10           capacity        1536MiB 0 10.76GiB  612.44MiB 8.90GiB    9.21GiB-8.90GiB  -        -
TORCH_1_13_LIMITED   limit           512MiB  2 39.59GiB  28.91GiB  9.40GiB    9.52GiB-9.40GiB  -        9.80GiB
TORCH_2_0_FRAGMENTED fragmentation   1.17GiB 1 23.69GiB  101.56MiB 15.02GiB   22.6GiB-15.02GiB -        -
TORCH_2_1            capacity        4.5GiB  0 23.69GiB  3.19GiB   19.9GiB    32.75MiB         20.23GiB -
TORCH_2_2_SHARED     other-processes 2GiB    0 79.15GiB  1.31GiB   15.7GiB    601.2MiB         16.8GiB  -
TORCH_2_4_CONTAINER  fragmentation   546MiB  0 15.77GiB  514.19MiB 13.73GiB   736.86MiB        -        -
TORCH_2_6_LIMITED    fragmentation   2MiB    0 255.98GiB 244.65GiB 1017.01MiB 54.99MiB         -        1.05GiB
TORCH_2_9            capacity        7.81GiB 3 139.81GiB 5.02GiB   133.6GiB   410.33MiB        134.78GiB -
ZERO_FREE            capacity        768MiB  0 31.84GiB  0         52.93GiB   32.88MiB         -        -
OLD_SHARED           other-processes 20MiB   0 23.69GiB  9.5MiB    310MiB     62MiB            -        -
ASYNC                capacity        640MiB  0 15.99GiB  0         14.9GiB    -                -        -
IPEX                 unclear         1.71GiB 0 15.56GiB  -         176MiB     0                -        -
XPU                  capacity        4.66GiB 0 5.65GiB   1.2GiB    4.1GiB     12MiB            -        -
NPU                  capacity        1536MiB 3 60.96GiB  612MiB    57.1GiB    58.4GiB-57.1GiB  -        -
MPS                  capacity        1.16GiB - 18.13GiB  18.13GiB-17.45GiB 15.05GiB 0          17.45GiB -
MPS_1_12             capacity        1.02GiB - 9.07GiB   9.07GiB-9.05GiB   9.05GiB  0          9.05GiB  -
"""
FIGURES = {line.split()[0]: line.split()[1:] for line in TABLE.strip().splitlines()}


def figure(text: str) -> int | None:
    whole, _, less = text.partition("-")
    return parse_bytes(whole) - parse_bytes(less or "0") if whole else None


@pytest.mark.parametrize("name", FIGURES)
def test_figures_and_kind(name: str) -> None:
    """Also where a logger or a person has left out parentheses, the head or line ends."""
    text, (kind, *figures) = getattr(said, name), FIGURES[name]
    found = parsed(text)
    named = "requested device total free allocated cached process allowed".split()
    assert (found.source, *(getattr(found, one) for one in named)) == ("allocator", *map(figure, figures))
    made = diagnose(found)
    assert made.kind == kind
    json.dumps(made.to_json())
    if name in ("TORCH_1_10", "TORCH_2_1", "TORCH_2_9"):
        assert parsed(text.replace("(", "").replace(")", "").replace(";", ",")) == found
        assert parsed(text[text.index("Tried to") :]) == found
        assert parsed(text.replace(". ", ".\n   ")) == found


def test_what_else_a_message_tells() -> None:
    shared = parsed(said.TORCH_2_2_SHARED)
    assert [(other.pid, other.bytes) for other in shared.others] == [(4411, gib(61.02))]
    assert parsed(said.TORCH_2_4_CONTAINER).private == mib(46)
    first = "CUDA out of memory. Tried to allocate 2.00 GiB."
    found = parsed(f"{first} {said.TORCH_2_9}")  # a second one in the same text is left alone
    assert (found.requested, found.total) == (gib(2), None)


WITHOUT_FIGURES = {
    ("cuda", "", "unclear"): (
        "RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be",
        "torch.AcceleratorError: CUDA error: out of memory",
        "torch.cuda.OutOfMemoryError: CUDA out of memory.",
        "RuntimeError: CUDA out of memory",
        "torch.OutOfMemoryError: Allocation on device \nThis error means",
        "RuntimeError: CUDA driver error: out of memory",
        "RuntimeError: cuda runtime error (2) : out of memory at /a/THCStorage.cu:58",
        "THCudaCheck FAIL file=/a/THCStorage.cu line=58 error=2 : out of memory",
        "RuntimeError: Triton Error [CUDA]: out of memory",
        "cuda failed with error 2 out of memory. use CUDA_LAUNCH_BLOCKING=1",
    ),
    ("library", "cuSOLVER", "library"): ("RuntimeError: cusolver error: CUSOLVER_STATUS_ALLOC_FAILED",),
    ("library", "cuBLAS", "library"): (
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate()`",
    ),
    ("library", "cuDNN", "library"): ("RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED",),
    ("library", "NCCL", "library"): (
        "n1:1:9 [0] NCCL WARN Cuda failure 'out of memory'",
        "NCCL WARN Cuda failure 2 'out of memory'",
    ),
    ("host", "", "host"): (
        "RuntimeError: $ Torch: not enough memory: you tried to allocate 8GB. Buy new RAM!",
        "numpy.core._exceptions.MemoryError: Unable to allocate 3.5 GiB for an array with",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory:"
        " you tried to allocate 1125899906842624 bytes. Error code 12 (Cannot allocate memory)",
    ),
}
NO_MESSAGES = (
    "",
    "out of memory",
    "we ran out of memory yesterday",
    "loss 0.1",
    "Tried to allocate 2.00 GiB for safety",
)


def test_messages_without_figures_and_what_is_none() -> None:
    for expected, texts in WITHOUT_FIGURES.items():
        for text in texts:
            found = parsed(text)
            assert (found.source, found.library, diagnose(found).kind) == expected, text
    for text in NO_MESSAGES:
        assert parse_message(text) is None


def test_the_sum_is_shown() -> None:
    made = diagnosed(said.TORCH_2_1)
    assert made.missing == gib(4.5) - gib(3.19) - mib(32.75)
    assert "3.19 GiB + 32.75 MiB = 3.22 GiB < 4.50 GiB: 1.28 GiB missing" in made.arithmetic


def test_what_others_hold_is_told_first_and_is_the_reason_where_it_is_much() -> None:
    made = diagnosed(said.OLD_SHARED)  # which lists no process
    assert made.arithmetic[0].startswith("other processes hold 23.32 GiB of 23.69 GiB")
    assert "gpulint gpu" in made.advice[0].text
    made = diagnosed(said.TORCH_2_1.replace("4.50 GiB", "3.40 GiB", 1))
    assert made.kind == "capacity"
    assert 100 * MIB < (made.missing or 0) < 256 * MIB  # the other process would have made room
    assert made.arithmetic[0].startswith("other processes hold 256.00 MiB")


def test_fragmentation_is_said_where_it_is_and_only_there() -> None:
    for text, share in ((said.TORCH_1_1, "98 %"), (said.ASYNC, "93 %")):
        made = diagnosed(text)
        assert any(line.startswith(share) and "no fragmentation" in line for line in made.arithmetic)
        assert "gpulint verify" in made.advice[0].text
        assert not any("expandable" in str(each) for each in made.advice)
    assert "95 % of what is reserved is in tensors" in diagnosed(said.TORCH_2_4_CONTAINER).arithmetic[-1]
    advice = diagnosed(said.TORCH_2_0_FRAGMENTED).advice
    assert "expandable" in advice[0].text
    assert "106 GiB" in advice[-1].measured
    refused = OomMessage(
        "allocator", requested=GIB, free=4 * GIB, total=8 * GIB, allocated=3 * GIB, cached=2 * GIB
    )
    assert diagnose(refused).kind == "unclear"  # enough was free


def test_small_requests_need_a_whole_segment() -> None:
    """20 MiB are asked from the driver for 5; so 6 MiB free are no room."""
    made = diagnose(
        OomMessage("allocator", requested=5 * MIB, free=6 * MIB, total=8 * GIB, allocated=7 * GIB, cached=MIB)
    )
    assert made.kind == "capacity"
    assert "needs 20.00 MiB from the driver" in made.arithmetic[0]


def test_a_request_far_above_the_card_is_a_shape_that_is_wrong() -> None:
    made = diagnosed(said.TORCH_2_1.replace("4.50 GiB", "298.02 GiB", 1))
    assert made.kind == "shape"
    assert "13 times the card" in str(made)
    assert "shapes" in made.advice[0].text
    assert not any("smaller batch with" in str(advice) for advice in made.advice)
    somewhat = diagnosed(said.TORCH_2_1.replace("4.50 GiB", "30.00 GiB", 1))
    assert somewhat.kind == "capacity"
    assert "larger than the card" in str(somewhat)
    beyond = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory."
    assert diagnosed(beyond).kind == "shape"


CAUSES = (
    ([("/v/site-packages/torch/serialization.py", "load")], "checkpoint is loaded", 'map_location="cpu"'),
    ([("C:\\v\\site-packages\\torch\\serialization.py", "load_tensor")], "checkpoint", "map_location"),
    (
        [("/v/torch/optim/optimizer.py", "load_state_dict"), ("/usr/lib/python3.11/copy.py", "deepcopy")],
        "into an optimizer",
        "`del` the checkpoint",
    ),
    ([("/v/torch/nn/modules/module.py", "load_state_dict")], "into a network", "GPU403"),
    (
        [
            ("/v/transformers/trainer.py", "evaluation_loop"),
            ("/v/transformers/trainer_pt_utils.py", "nested_concat"),
        ],
        "gathers an evaluation's outputs",
        "eval_accumulation_steps",
    ),
    ([("/v/transformers/generation/utils.py", "GenerationMixin.generate")], "`generate`", "max_new_tokens"),
    ([("/v/torch/optim/adamw.py", "_init_group")], "first step", "twice the weights"),
)


def test_the_traceback_says_the_cause() -> None:
    for frames, what, advised in CAUSES:
        made = diagnosed(said.TORCH_2_9, frames=[("/home/me/train.py", "main"), *frames])
        assert what in made.cause.what
        assert advised in made.advice[0].text
        assert made.to_json()["cause"] == made.cause.what
    ones_own = [("/home/me/train.py", "generate"), ("/home/me/load.py", "load")]
    assert diagnosed(said.TORCH_2_9, frames=ones_own).cause is None
