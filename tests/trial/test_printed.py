"""What a script prints, compared as far as it is about results."""

from __future__ import annotations

import pytest

from gpulint.trial.comparing import difference, unordered, unsteady

SAME = [
    ("loss 0.3417", "loss 0.3417"),
    ("loss tensor(2.3026, grad_fn=<AddBackward0>)", "loss tensor(2.3026)"),
    ("loss tensor(2.3026, device='cuda:0', requires_grad=True)", "loss 2.302585"),
    ("total 12.3456", "total 12.3457"),  # added up in double precision: the last place that is printed
    ("peak memory 512.3 MiB", "peak memory 200.1 MiB"),
    ("max_memory_allocated: 1200.50MB", "max_memory_allocated: 300.25MB"),
    ("epoch 1 loss 0.5 time 3.21 (3.40)", "epoch 1 loss 0.5 time 2.99 (3.01)"),
    ("12.3 it/s, 41.2s", "14.9 it/s, 33.0s"),
    ("done at 12:30:01", "done at 12:31:44"),
    ("<Net object at 0x7f00aa>", "<Net object at 0x7f11bb>"),
    ("nan", "nan"),
    ("", "\n\n"),
]
OTHER = [
    ("loss 0.3417", "loss 0.3517"),
    ("epoch 1 loss 0.5 time 3.2", "epoch 1 loss 0.6 time 3.2"),
    ("right 93 of 100", "right 94 of 100"),
    ("accuracy 93.1%", "accuracy 92.1%"),
    ("f1 tensor([0.5, 0.25])", "f1 tensor([0.5, 0.26])"),
    ("a\nb", "a"),
    ("a", "a\nb"),
    ("loss 1.0", "loss nan"),
    ("shape (3, 4)", "shape (3, 5)"),
    ("best epoch: 3", "best epoch: 2"),
]


@pytest.mark.parametrize(("before", "after"), SAME)
def test_these_say_the_same(before: str, after: str) -> None:
    assert difference(before, before, after) == ""


@pytest.mark.parametrize(("before", "after"), OTHER)
def test_these_do_not(before: str, after: str) -> None:
    assert difference(before, before, after)


def test_numbers_that_two_unchanged_runs_print_differently_count_in_no_line_of_the_same_words() -> None:
    first = "step 1: loss 0.50, pace 11\nstep 2: loss 0.40, pace 12"
    again = "step 1: loss 0.50, pace 11\nstep 2: loss 0.40, pace 14"
    assert unsteady(first, again) == 1
    assert difference(first, again, "step 1: loss 0.50, pace 15\nstep 2: loss 0.40, pace 13") == ""
    assert "0.45" in difference(first, again, "step 1: loss 0.45, pace 11\nstep 2: loss 0.40, pace 12")


def test_the_order_of_ranks_that_print_at_once_does_not_count() -> None:
    assert unordered("rank 0: 1.5\nrank 1: 2.5", "rank 1: 2.5\nrank 0: 1.5", "rank 1: 2.5\nrank 0: 1.5") == ""
    assert unordered("rank 0: 1.5\nrank 1: 2.5", "rank 1: 2.5\nrank 0: 1.5", "rank 1: 2.5\nrank 0: 1.6")
