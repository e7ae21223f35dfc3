"""Out-of-memory messages of every torch since 1.10, alone and in logs."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tracemalloc

import pytest
import warm

from gpulint.memory.oom import diagnose
from gpulint.memory.oom.messages import OomMessage, parse_message
from gpulint.operator.oom_log import LogReport, read_log
from gpulint.reports.oom import document
from gpulint.reports.terminal import write

MIB = 1024**2
GIB = 1024**3

# Torch 1.10 to 2.0: one sentence in parentheses. RuntimeError up to 1.12, torch.cuda.OutOfMemoryError from 1.13.
OLD_TAIL = (
    " If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation."
    "  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
)
TORCH_1_10 = (
    "RuntimeError: CUDA out of memory. Tried to allocate 1.50 GiB (GPU 0; 10.76 GiB total capacity;"
    " 8.90 GiB already allocated; 612.44 MiB free; 9.21 GiB reserved in total by PyTorch)" + OLD_TAIL
)
TORCH_1_13_LIMITED = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 2; 39.59 GiB total capacity;"
    " 9.40 GiB already allocated; 28.91 GiB free; 9.80 GiB allowed; 9.52 GiB reserved in total by PyTorch)"
    + OLD_TAIL
)
TORCH_2_0_FRAGMENTED = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.17 GiB (GPU 1; 23.69 GiB total capacity;"
    " 15.02 GiB already allocated; 101.56 MiB free; 22.60 GiB reserved in total by PyTorch)" + OLD_TAIL
)
# 2.1 misspells capacity, names processes, and still recommends max_split_size_mb.
HELD = """\
import torch
from torch import nn
def train(model: nn.Module, loader, criterion, optimizer):
    total = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        total += loss
        optimizer.step()
    return total
"""
TORCH_2_1 = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.50 GiB. GPU 0 has a total capacty of"
    " 23.69 GiB of which 3.19 GiB is free. Process 2006998 has 256.00 MiB memory in use. Including non-PyTorch memory,"
    " this process has 20.23 GiB memory in use. Of the allocated memory 19.90 GiB is allocated by PyTorch, and"
    " 32.75 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting"
    " max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
)
NEW_TAIL = (
    " If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid"
    " fragmentation.  See documentation for Memory Management "
    " (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
)
TORCH_2_2_SHARED = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of"
    " 79.15 GiB of which 1.31 GiB is free. Process 4411 has 61.02 GiB memory in use. Including non-PyTorch memory, this"
    " process has 16.80 GiB memory in use. Of the allocated memory 15.70 GiB is allocated by PyTorch, and 601.20 MiB is"
    " reserved by PyTorch but unallocated." + NEW_TAIL
)
# 2.4: in a container the process is listed under the host's number; private pools are named.
TORCH_2_4_CONTAINER = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 546.00 MiB. GPU 0 has a total capacity of 15.77 GiB"
    " of which 514.19 MiB is free. Process 562167 has 15.25 GiB memory in use. Of the allocated memory 13.73 GiB is"
    " allocated by PyTorch, with 46.00 MiB allocated in private pools (e.g., CUDA Graphs), and 736.86 MiB is reserved by"
    " PyTorch but unallocated." + NEW_TAIL
)
TORCH_2_6_LIMITED = (
    "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of 255.98 GiB of"
    " which 244.65 GiB is free. 1.05 GiB allowed; Of the allocated memory 1017.01 MiB is allocated by PyTorch, with"
    " 17.00 MiB allocated in private pools (e.g., HIP Graphs), and 54.99 MiB is reserved by PyTorch but unallocated."
    + NEW_TAIL
)
TORCH_2_9 = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.81 GiB. GPU 3 has a total capacity of 139.81 GiB of"
    " which 5.02 GiB is free. Including non-PyTorch memory, this process has 134.78 GiB memory in use. Of the allocated"
    " memory 133.60 GiB is allocated by PyTorch, and 410.33 MiB is reserved by PyTorch but unallocated. If reserved but"
    " unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See"
    " documentation for Memory Management"
    "  (https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-alloc-conf)"
)
TORCH_2_13 = TORCH_2_9.replace("docs.pytorch.org/docs/stable", "docs.pytorch.org/docs/2.13")
ZERO_FREE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 768.00 MiB. GPU 0 has a total capacity of 31.84 GiB of"
    " which 0 bytes is free. Including non-PyTorch memory, this process has 17179869184.00 GiB memory in use. Of the"
    " allocated memory 52.93 GiB is allocated by PyTorch, and 32.88 MiB is reserved by PyTorch but unallocated."
    + NEW_TAIL
)


# 1.0 to 1.3 say what is cached and in no tensor, others what is reserved; extensions and other devices say less.
TORCH_1_1 = (
    "RuntimeError: CUDA out of memory. Tried to allocate 48.00 MiB (GPU 0; 7.93 GiB total capacity; 6.71 GiB already allocated;"
    " 19.00 MiB free; 143.20 MiB cached)"
)
OLD_SHARED = (
    "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 23.69 GiB total capacity; 310.00 MiB already"
    " allocated; 9.50 MiB free; 372.00 MiB reserved in total by PyTorch)"
)
FULL = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 226.00 MiB. GPU 0 has a total capacity of 15.70 GiB of which"
    " 210.38 MiB is free. Including non-PyTorch memory, this process has 15.48 GiB memory in use. Of the allocated memory 14.81"
    " GiB is allocated by PyTorch, and 336.73 MiB is reserved by PyTorch but unallocated." + NEW_TAIL
)
ASYNC = """\
torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)
Currently allocated     : 14.90 GiB
Requested               : 640.00 MiB
Device limit            : 15.99 GiB
Free (according to CUDA): 0 bytes
PyTorch limit (set by user-supplied memory fraction)
                        : 17179869184.00 GiB
"""
IPEX = (
    "RuntimeError: XPU out of memory. Tried to allocate 1.71 GiB (GPU 0; 15.56 GiB total capacity; 176.00 MiB already"
    " allocated; 176.00 MiB reserved in total by PyTorch)"
)
XPU = (
    "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 4.66 GiB. GPU 0 has a total capacity of 5.65 GiB of which 1.20"
    " GiB is free. Of the allocated memory 4.10 GiB is allocated by PyTorch, and 12.00 MiB is reserved by PyTorch but"
    " unallocated. Please use `empty_cache` to release all unoccupied cached memory."
)
NPU = (
    "RuntimeError: NPU out of memory. Tried to allocate 1.50 GiB (NPU 3; 60.96 GiB total capacity; 57.10 GiB already allocated;"
    " 57.10 GiB current active; 612.00 MiB free; 58.40 GiB reserved in total by PyTorch) If reserved memory is >> allocated"
)
MPS = (
    "RuntimeError: MPS backend out of memory (MPS allocated: 15.05 GB, other allocations: 2.40 GB, max allowed: 18.13 GB). Tried"
    " to allocate 1.16 GB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory"
    " allocations (may cause system failure)."
)
MPS_1_12 = (
    "RuntimeError: MPS backend out of memory (MPS allocated: 9.05 GB, max allowed: 9.07 GB). Tried to allocate 1.02 GB on"
    " shared pool."
)


def gib(value: float) -> int:
    return round(value * GIB)


def mib(value: float) -> int:
    return round(value * MIB)


class TestParsing:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (
                TORCH_1_10,
                (mib(1536), 0, gib(10.76), mib(612.44), gib(8.90), gib(9.21) - gib(8.90), None, None),
            ),
            (
                TORCH_1_13_LIMITED,
                (mib(512), 2, gib(39.59), gib(28.91), gib(9.40), gib(9.52) - gib(9.40), None, gib(9.80)),
            ),
            (
                TORCH_2_0_FRAGMENTED,
                (gib(1.17), 1, gib(23.69), mib(101.56), gib(15.02), gib(22.6) - gib(15.02), None, None),
            ),
            (TORCH_2_1, (gib(4.5), 0, gib(23.69), gib(3.19), gib(19.9), mib(32.75), gib(20.23), None)),
            (TORCH_2_2_SHARED, (gib(2), 0, gib(79.15), gib(1.31), gib(15.7), mib(601.2), gib(16.8), None)),
            (
                TORCH_2_4_CONTAINER,
                (mib(546), 0, gib(15.77), mib(514.19), gib(13.73), mib(736.86), None, None),
            ),
            (
                TORCH_2_6_LIMITED,
                (mib(2), 0, gib(255.98), gib(244.65), mib(1017.01), mib(54.99), None, gib(1.05)),
            ),
            (TORCH_2_9, (gib(7.81), 3, gib(139.81), gib(5.02), gib(133.6), mib(410.33), gib(134.78), None)),
            (TORCH_2_13, (gib(7.81), 3, gib(139.81), gib(5.02), gib(133.6), mib(410.33), gib(134.78), None)),
            (ZERO_FREE, (mib(768), 0, gib(31.84), 0, gib(52.93), mib(32.88), None, None)),
            (TORCH_1_1, (mib(48), 0, gib(7.93), mib(19), gib(6.71), mib(143.2), None, None)),
            (ASYNC, (mib(640), 0, gib(15.99), 0, gib(14.9), None, None, None)),
            (IPEX, (gib(1.71), 0, gib(15.56), None, mib(176), 0, None, None)),
            (XPU, (gib(4.66), 0, gib(5.65), gib(1.2), gib(4.1), mib(12), None, None)),
            (
                NPU,
                (mib(1536), 3, gib(60.96), mib(612), gib(57.1), gib(58.4) - gib(57.1), None, None),
            ),
            (
                MPS,
                (gib(1.16), None, gib(18.13), gib(18.13) - gib(17.45), gib(15.05), 0, gib(17.45), None),
            ),
            (MPS_1_12, (gib(1.02), None, gib(9.07), gib(9.07) - gib(9.05), gib(9.05), 0, gib(9.05), None)),
        ],
        ids="1.10 1.13 2.0 2.1 2.2 2.4 2.6-hip 2.9 2.13 wsl 1.1 async ipex xpu npu mps mps-1.12".split(),
    )
    def test_figures(self, text, expected) -> None:
        found = parse_message(text)
        assert found is not None
        assert found.source == "allocator"
        figures = (
            found.requested,
            found.device,
            found.total,
            found.free,
            found.allocated,
            found.cached,
            found.process,
            found.allowed,
        )
        assert figures == expected

    @pytest.mark.parametrize(
        "text",
        [TORCH_1_10, TORCH_2_1, TORCH_2_9],
        ids=["1.10", "2.1", "2.9"],
    )
    def test_figures_need_no_parentheses_and_no_head(self, text) -> None:
        """Loggers and people leave the one or the other out."""
        whole = parse_message(text)
        bare = text.replace("(", "").replace(")", "").replace(";", ",")
        assert parse_message(bare) == whole
        assert parse_message(text[text.index("Tried to") :]) == whole

    def test_what_is_larger_than_any_memory_is_a_shape(self) -> None:
        found = parse_message(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory."
        )
        assert found is not None
        assert diagnose(found).kind == "shape"

    def test_other_processes_and_private_pools(self) -> None:
        shared, container = parse_message(TORCH_2_2_SHARED), parse_message(TORCH_2_4_CONTAINER)
        assert shared is not None
        assert container is not None
        assert [(other.pid, other.bytes) for other in shared.others] == [(4411, gib(61.02))]
        assert container.private == mib(46)

    @pytest.mark.parametrize(
        ("text", "source", "library"),
        [
            ("RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be", "cuda", ""),
            ("torch.AcceleratorError: CUDA error: out of memory", "cuda", ""),
            ("torch.cuda.OutOfMemoryError: CUDA out of memory.", "cuda", ""),
            ("RuntimeError: CUDA out of memory", "cuda", ""),
            ("torch.OutOfMemoryError: Allocation on device \nThis error means", "cuda", ""),
            ("RuntimeError: CUDA driver error: out of memory", "cuda", ""),
            ("RuntimeError: cuda runtime error (2) : out of memory at /a/THCStorage.cu:58", "cuda", ""),
            ("THCudaCheck FAIL file=/a/THCStorage.cu line=58 error=2 : out of memory", "cuda", ""),
            ("RuntimeError: Triton Error [CUDA]: out of memory", "cuda", ""),
            ("cuda failed with error 2 out of memory. use CUDA_LAUNCH_BLOCKING=1", "cuda", ""),
            ("RuntimeError: cusolver error: CUSOLVER_STATUS_ALLOC_FAILED", "library", "cuSOLVER"),
            ("RuntimeError: $ Torch: not enough memory: you tried to allocate 8GB. Buy new RAM!", "host", ""),
            ("numpy.core._exceptions.MemoryError: Unable to allocate 3.5 GiB for an array with", "host", ""),
            (
                "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
                "library",
                "cuBLAS",
            ),
            ("RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "library", "cuDNN"),
            ("n1:1:9 [0] NCCL WARN Cuda failure 'out of memory'", "library", "NCCL"),
            ("NCCL WARN Cuda failure 2 'out of memory'", "library", "NCCL"),
            (
                "RuntimeError: [enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory:"
                " you tried to allocate 1125899906842624 bytes. Error code 12 (Cannot allocate memory)",
                "host",
                "",
            ),
        ],
    )
    def test_messages_without_figures(self, text, source, library) -> None:
        found = parse_message(text)
        assert found is not None
        assert (found.source, found.library) == (source, library)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "out of memory",
            "we ran out of memory yesterday",
            "loss 0.1",
            "Tried to allocate 2.00 GiB for safety",
        ],
    )
    def test_talk_about_it_is_no_message(self, text) -> None:
        assert parse_message(text) is None

    def test_line_breaks_do_not_matter(self) -> None:
        assert parse_message(TORCH_2_9.replace(". ", ".\n   ")) == parse_message(TORCH_2_9)

    def test_a_second_message_in_the_same_text_is_left_alone(self) -> None:
        first = "CUDA out of memory. Tried to allocate 2.00 GiB."
        found = parse_message(f"{first} {TORCH_2_9}")
        assert found is not None
        assert (found.requested, found.total) == (gib(2), None)

    def test_the_current_cpu_allocator_says_what_we_read(self) -> None:
        torch = pytest.importorskip("torch")
        with pytest.raises(RuntimeError) as caught:
            torch.empty(1 << 50, dtype=torch.uint8)
        found = parse_message(str(caught.value))
        assert found is not None
        assert (found.source, found.requested) == ("host", 1 << 50)


class TestDiagnosis:
    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            (TORCH_1_10, "capacity"),
            (TORCH_1_13_LIMITED, "limit"),
            (TORCH_2_0_FRAGMENTED, "fragmentation"),
            (TORCH_2_1, "capacity"),
            (TORCH_2_2_SHARED, "other-processes"),
            (TORCH_2_4_CONTAINER, "fragmentation"),
            (TORCH_2_9, "capacity"),
            (ZERO_FREE, "capacity"),
            (TORCH_1_1, "capacity"),
            (OLD_SHARED, "other-processes"),
            (FULL, "capacity"),
            (ASYNC, "capacity"),
            (IPEX, "unclear"),
            (XPU, "capacity"),
            (NPU, "capacity"),
            (MPS, "capacity"),
            ("CUDA error: out of memory", "unclear"),
            ("CUDNN_STATUS_ALLOC_FAILED", "library"),
            ("DefaultCPUAllocator: can't allocate memory: you tried to allocate 99 bytes", "host"),
        ],
    )
    def test_kinds(self, text, kind) -> None:
        message = parse_message(text)
        assert message is not None
        assert diagnose(message).kind == kind

    def test_other_processes_are_told_first_also_where_no_message_lists_them(self) -> None:
        message = parse_message(OLD_SHARED)
        assert message is not None
        made = diagnose(message)
        assert (
            made.arithmetic[0]
            == "other processes hold 23.32 GiB of 23.69 GiB, with this process's CUDA context"
        )
        assert "gpulint gpu" in made.advice[0].text

    def test_a_little_that_others_hold_is_not_the_reason(self) -> None:
        message = parse_message(TORCH_2_1.replace("4.50 GiB", "3.40 GiB", 1))
        assert message is not None
        made = diagnose(message)
        assert made.kind == "capacity"
        assert 100 * MIB < (made.missing or 0) < 256 * MIB  # the other process would have made room
        assert made.arithmetic[0] == "other processes hold 256.00 MiB of 23.69 GiB"

    @pytest.mark.parametrize(("text", "share"), [(FULL, "98 %"), (TORCH_1_1, "98 %"), (ASYNC, "93 %")])
    def test_a_card_full_of_tensors_is_size_or_growth_and_no_fragmentation(self, text, share) -> None:
        message = parse_message(text)
        assert message is not None
        made = diagnose(message)
        assert any(line.startswith(share) and "no fragmentation" in line for line in made.arithmetic)
        assert "gpulint verify" in made.advice[0].text
        assert not any("expandable" in str(each) for each in made.advice)

    def test_cached_little_but_enough_is_fragmentation_that_hides_a_size(self) -> None:
        message = parse_message(TORCH_2_4_CONTAINER)
        assert message is not None
        assert "95 % of what is reserved is in tensors" in diagnose(message).arithmetic[-1]

    @pytest.mark.parametrize(
        ("frames", "said", "advised"),
        [
            (
                [("/v/site-packages/torch/serialization.py", "load")],
                "checkpoint is loaded",
                'map_location="cpu"',
            ),
            (
                [("C:\\v\\site-packages\\torch\\serialization.py", "load_tensor")],
                "checkpoint",
                "map_location",
            ),
            (
                [
                    ("/v/torch/optim/optimizer.py", "load_state_dict"),
                    ("/usr/lib/python3.11/copy.py", "deepcopy"),
                ],
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
            (
                [("/v/transformers/generation/utils.py", "GenerationMixin.generate")],
                "`generate`",
                "max_new_tokens",
            ),
            ([("/v/torch/optim/adamw.py", "_init_group")], "first step", "twice the weights"),
        ],
    )
    def test_the_traceback_says_the_cause(self, frames, said, advised) -> None:
        message = parse_message(TORCH_2_9)
        assert message is not None
        made = diagnose(message, frames=[("/home/me/train.py", "main"), *frames])
        assert made.cause is not None
        assert said in made.cause.what
        assert advised in made.advice[0].text
        assert made.to_json()["cause"] == made.cause.what

    def test_functions_of_ones_own_are_no_cause(self) -> None:
        message = parse_message(TORCH_2_9)
        assert message is not None
        assert (
            diagnose(message, frames=[("/home/me/train.py", "generate"), ("/home/me/load.py", "load")]).cause
            is None
        )

    def test_a_request_far_above_the_card_is_a_shape_that_is_wrong(self) -> None:
        text = TORCH_2_1.replace("4.50 GiB", "298.02 GiB", 1)
        message = parse_message(text)
        assert message is not None
        made = diagnose(message)
        assert made.kind == "shape"
        assert "the request alone, one piece, is 13 times the card" in str(made)
        assert "shapes" in made.advice[0].text
        assert not any("smaller batch with" in str(advice) for advice in made.advice)
        somewhat = parse_message(TORCH_2_1.replace("4.50 GiB", "30.00 GiB", 1))
        assert somewhat is not None
        assert diagnose(somewhat).kind == "capacity"
        assert "the request alone, one piece, is larger than the card" in str(diagnose(somewhat))

    def test_the_sum_is_shown(self) -> None:
        message = parse_message(TORCH_2_1)
        assert message is not None
        made = diagnose(message)
        assert made.missing == gib(4.5) - gib(3.19) - mib(32.75)
        assert "3.19 GiB + 32.75 MiB = 3.22 GiB < 4.50 GiB: 1.28 GiB missing" in made.arithmetic

    def test_small_requests_need_a_whole_segment(self) -> None:
        """20 MiB are asked from the driver for 5; so 6 MiB free are no room."""
        message = OomMessage(
            "allocator", requested=5 * MIB, free=6 * MIB, total=8 * GIB, allocated=7 * GIB, cached=MIB
        )
        made = diagnose(message)
        assert made.kind == "capacity"
        assert "needs 20.00 MiB from the driver" in made.arithmetic[0]

    def test_advice_is_ordered_and_measured(self) -> None:
        message = parse_message(TORCH_2_0_FRAGMENTED)
        assert message is not None
        advice = diagnose(message).advice
        assert "expandable" in advice[0].text
        assert "106 GiB" in advice[-1].measured

    def test_enough_free_and_refused_is_not_called_fragmentation(self) -> None:
        message = OomMessage(
            "allocator", requested=GIB, free=4 * GIB, total=8 * GIB, allocated=3 * GIB, cached=2 * GIB
        )
        assert diagnose(message).kind == "unclear"

    def test_every_diagnosis_is_json(self) -> None:
        message = parse_message(TORCH_2_2_SHARED)
        assert message is not None
        json.dumps(diagnose(message).to_json())


TRACE = """\
Traceback (most recent call last):
  File "/home/ann/train.py", line 88, in <module>
    main()
  File "/home/ann/train.py", line 61, in train_step
    out = model(batch)
  File "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1775, in _wrapped_call_impl
    return self._call_impl(*args, **kwargs)
"""


def render(report: LogReport) -> list[str]:
    out = io.StringIO()
    write(document(report), out)
    return out.getvalue().splitlines()


def log(*lines: str):
    return read_log(io.StringIO("\n".join(lines) + "\n"))


class TestLogs:
    def test_the_users_line_is_named(self) -> None:
        report = log("epoch 1", *TRACE.splitlines(), TORCH_2_9)
        (found,) = report.occurrences
        assert found.where == "/home/ann/train.py:61 in train_step"
        assert found.line == 9

    @pytest.mark.parametrize(
        ("lines", "where"),
        [
            (["Cell In[7], line 4", "      2 x = 1", "----> 4 train()"], "Cell In[7]:4"),
            (["File ~/proj/train.py:33, in Trainer.fit(self, data)"], "~/proj/train.py:33 in Trainer.fit"),
            (["│ /home/ann/train.py:176 in <module>      │"], "/home/ann/train.py:176 in <module>"),
        ],
    )
    def test_tracebacks_of_notebooks_and_of_rich_are_read(self, lines, where) -> None:
        foreign = "File /v/lib/python3.11/site-packages/torch/nn/modules/linear.py:125, in Linear.forward(self, input)"
        head = "OutOfMemoryError                          Traceback (most recent call last)"
        (found,) = log(head, *lines, foreign, TORCH_2_9).occurrences
        assert found.where == where

    def test_the_cause_is_read_off_frames_that_are_not_the_users(self) -> None:
        frame = '  File "/opt/venv/lib/python3.11/site-packages/torch/serialization.py", line 1500, in load_tensor'
        text = render(log(*TRACE.splitlines(), frame, TORCH_2_9))
        assert any("raised while a checkpoint is loaded" in line for line in text)
        assert any('1. `torch.load(path, map_location="cpu")`' in line for line in text)

    def test_a_message_before_its_traceback(self) -> None:
        (found,) = log(f"ERROR: {TORCH_2_9}", *TRACE.splitlines(), TORCH_2_9).occurrences
        assert (found.where, found.line, found.times) == ("/home/ann/train.py:61 in train_step", 1, 2)

    def test_lines_of_the_drivers_allocator(self) -> None:
        (found,) = log("step 1", *ASYNC.splitlines(), "step 2").occurrences
        assert found.diagnosis.message.requested == mib(640)

    def test_interleaved_ranks(self) -> None:
        one, two = ([f"[rank{n}]: {line}" for line in (*TRACE.splitlines(), TORCH_2_1)] for n in (0, 1))
        two = [line.replace(":61", ":70").replace("line 61", "line 70") for line in two]
        report = log(*[line for pair in zip(one, two, strict=True) for line in pair])
        assert [(o.rank, o.where) for o in report.occurrences] == [
            ("0", "/home/ann/train.py:61 in train_step"),
            ("1", "/home/ann/train.py:70 in train_step"),
        ]

    @pytest.mark.parametrize(
        "prefix", ["[rank3]: ", "[default3]:", "3: ", "2026-01-05T10:11:12.123Z [rank3]: "]
    )
    def test_rank_prefixes(self, prefix) -> None:
        (found,) = log(prefix + TORCH_2_4_CONTAINER).occurrences
        assert found.rank == "3"

    def test_ray_actors(self) -> None:
        (found,) = log(f"(RayTrainWorker pid=771, ip=10.0.0.4) {TORCH_2_4_CONTAINER}").occurrences
        assert found.rank == "pid 771"

    def test_colours_and_progress_bars(self) -> None:
        (found,) = log(f"  3%|▎| 3/100 [00:01<?]\r\x1b[31m{TORCH_2_9}\x1b[0m").occurrences
        assert found.diagnosis.kind == "capacity"

    def test_a_message_broken_over_lines(self) -> None:
        text = TORCH_2_2_SHARED.replace(". ", ".\n")
        (found,) = log(*text.splitlines(), "next").occurrences
        assert found.diagnosis.kind == "other-processes"

    def test_json_escaped_line(self) -> None:
        (found,) = log(json.dumps({"message": TRACE + TORCH_2_9})).occurrences
        assert found.diagnosis.message.device == 3
        assert found.where is not None

    def test_repetitions_are_one_error(self) -> None:
        report = log(TORCH_2_9, "retrying", TORCH_2_9, TORCH_2_1)
        assert [(o.line, o.times) for o in report.occurrences] == [(1, 2), (4, 1)]
        assert render(report)[-1].startswith("3 out-of-memory messages")

    def test_retries_are_read_from_summaries(self) -> None:
        report = log(
            "|            CUDA OOMs: 1            |        cudaMalloc retries: 17        |",
            TORCH_2_0_FRAGMENTED,
        )
        assert report.retries == 17
        assert "retried 17 times" in "\n".join(render(report))

    def test_growth_from_error_to_error(self) -> None:
        texts = [TORCH_2_9.replace("133.60 GiB is all", f"{size}.00 GiB is all") for size in (90, 110, 130)]
        assert "grew from one error to the next" in "\n".join(render(log(*texts)))

    def test_killed_by_the_host(self) -> None:
        text = "\n".join(render(log("torch.distributed.elastic: Signal 9 (SIGKILL) received by PID 77")))
        assert "No out-of-memory message" in text
        assert "killed from outside" in text

    def test_empty(self) -> None:
        assert render(log()) == ["No out-of-memory message in 1 line."]

    def test_message_at_the_very_end_without_newline(self) -> None:
        assert read_log(io.StringIO("CUDA out of memory. Tried to allocate 2.00 GiB.")).occurrences

    def test_memory_does_not_grow_with_the_log(self) -> None:
        def lines():
            for number in range(60_000):
                yield f"step {number} loss 0.1\n"
                if number % 1000 == 0:
                    yield TORCH_2_9 + "\n"

        tracemalloc.start()
        report = read_log(lines())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert report.occurrences[0].times == 60
        assert peak < 2 * MIB

    @pytest.mark.parametrize("filling", ["1", "x.py", "a", "-1 "])
    def test_a_long_line_is_read_once(self, filling) -> None:
        """Every pattern is linear: a quadratic one would take minutes here."""
        found = log(f"{TORCH_2_9[:70]} {filling * (60_000 // len(filling))} memory .py")
        assert found.occurrences[0].diagnosis.message.requested == gib(7.81)

    def test_a_line_without_end(self) -> None:
        text = "x" * 300_000 + " " + TORCH_2_9
        assert read_log(io.StringIO(text)).lines > 1


class TestCommand:
    def run(self, *arguments: str, given: str | bytes = "") -> subprocess.CompletedProcess[bytes]:
        data = given.encode() if isinstance(given, str) else given
        return warm.run_linter(
            [sys.executable, "-m", "gpulint", "oom", *arguments], input=data, capture_output=True
        )

    def test_from_a_file(self, tmp_path) -> None:
        (tmp_path / "a.log").write_text(TRACE + TORCH_2_0_FRAGMENTED)
        done = self.run(str(tmp_path / "a.log"))
        assert done.returncode == 1
        assert b"fragmentation: there is enough memory" in done.stdout
        assert b"train.py:61 in train_step" in done.stdout

    def test_from_standard_input_as_json(self) -> None:
        done = self.run("--json", given=TORCH_2_2_SHARED)
        data = json.loads(done.stdout)
        assert data["occurrences"][0]["kind"] == "other-processes"

    def test_bytes_that_are_no_text(self) -> None:
        done = self.run(given=b"\xff\xfe\x00 broken\n" + TORCH_2_9.encode())
        assert done.returncode == 1
        assert b"capacity" in done.stdout

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
    def test_logs_of_windows_shells(self, encoding, tmp_path) -> None:
        (tmp_path / "a.log").write_bytes(("step 1\n" + TORCH_2_9).encode(encoding))
        for done in (self.run(str(tmp_path / "a.log")), self.run(given=(tmp_path / "a.log").read_bytes())):
            assert done.returncode == 1
            assert b"capacity" in done.stdout

    def test_a_folder_and_a_closed_input(self, tmp_path) -> None:
        assert b"directory" in self.run(str(tmp_path)).stderr
        command = f"{sys.executable} -m gpulint oom <&-"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
        assert done.returncode == 2
        assert "internal error" not in done.stderr

    def test_nothing_found(self) -> None:
        assert self.run(given="all fine\n").returncode == 0

    def test_what_is_not_supported_is_named(self) -> None:
        log = "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 9 bytes.\n"
        done = self.run(given=log)
        text = done.stdout.decode()
        assert done.returncode == 1
        assert "1 message of JAX (XLA) (line 1): not supported" in text
        assert json.loads(self.run("--json", given=log).stdout)["unread"] == {"JAX (XLA)": [1]}

    def test_in_colour_where_it_is_asked_for(self) -> None:
        plain = self.run("--color", "never", given=TORCH_2_0_FRAGMENTED).stdout.decode()
        coloured = self.run("--color", "always", given=TORCH_2_0_FRAGMENTED).stdout.decode()
        assert "\x1b[" in coloured
        assert "\x1b[" not in plain
        assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain

    def test_the_files_of_the_traceback_are_checked_where_they_are_at_hand(self, tmp_path) -> None:
        (tmp_path / "train.py").write_text(HELD)
        log = tmp_path / "log"
        frame = f'  File "{tmp_path}/train.py", line 8, in train\n  File "/nowhere/a.py", line 3, in f\n'
        log.write_text(f"Traceback (most recent call last):\n{frame}{TORCH_2_1}\n")
        text = self.run(str(log)).stdout.decode()
        assert "in the files that the tracebacks name, gpulint has 1 finding:" in text
        assert "train.py:8:9: GPU101 `total` adds up `loss`" in text
        assert "(a line of the traceback)" in text
        (finding,) = json.loads(self.run("--json", str(log)).stdout)["findings"]
        assert finding["code"] == "GPU101"
        assert "GPU101" not in self.run("--no-lint", str(log)).stdout.decode()

    def test_no_such_file(self) -> None:
        done = self.run("no-such.log")
        assert done.returncode == 2
        assert b"no-such.log" in done.stderr
