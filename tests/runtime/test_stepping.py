"""Where steps begin and end, from events alone."""

from __future__ import annotations

import pytest

from gpulint.runtime.observing.stepping import Stepper


class Events:
    """Feeds a Stepper from a string of words: `f` forward in train mode, `e` in eval mode, `o1` optimizer 1,
    `b` batch, `r` a CUDA graph's replay, `x` explicit; `f:name` gives the module. Collects what is confirmed as (kind, previous mark,
    mark)."""

    def __init__(self, has_optimizer: bool = True) -> None:
        self.confirmed: list[tuple[str, int, int]] = []
        self.marks: list[int] = []  # the event number at which each mark was taken
        self.now = 0
        self.stepper = Stepper(self._take, lambda *what: self.confirmed.append(what))
        if has_optimizer:
            self.stepper.optimizer_created()

    def _take(self) -> int:
        self.marks.append(self.now)
        return len(self.marks) - 1

    def feed(self, words: str) -> Events:
        for word in words.split():
            name = word.partition(":")[2] or "model"
            if word[0] in "fe":
                self.stepper.forward(name, training=word[0] == "f")
            elif word[0] == "o":
                self.stepper.optimizer(word[1], ord(word[-1]))
            elif word[0] == "r":
                self.stepper.replay("graph")
            elif word[0] == "b":
                self.stepper.batch("loader")
            elif word[0] == "x":
                self.stepper.explicit()
            self.now += 1
        return self

    def kinds(self) -> str:
        return "".join(kind[0] for kind, _, _ in self.confirmed)

    def places(self, kind: str) -> list[int]:
        """The event numbers of the confirmed boundaries."""
        return [self.marks[mark] for one, _, mark in self.confirmed if one == kind]


def test_a_plain_loop_steps_at_the_next_forward():
    events = Events().feed("f o1 " * 5)
    assert events.places("train") == [2, 4, 6, 8]
    assert events.confirmed[0] == ("train", 0, 1)
    assert events.marks[0] == 0, "the first step begins with its own forward, and not with the run"


def test_accumulation_counts_one_step_per_optimizer_step():
    events = Events().feed("f f f f o1 " * 5)
    assert events.places("train") == [5, 10, 15, 20]


def test_two_optimizers_in_one_iteration_are_one_step():
    events = Events().feed("f:g f:d o1 f:d o2 " * 5)
    assert events.places("train") == [5, 10, 15, 20]


def test_several_discriminator_steps_before_a_generator_step():
    events = Events().feed("f:d o1 f:d o1 f:d o1 f:g o2 " * 4)
    assert len(events.places("train")) == 11


def test_an_optimizer_per_parameter_in_backward():
    events = Events().feed("f o1 o2 o3 " * 5)
    assert events.places("train") == [4, 8, 12, 16]


def test_an_optimizer_without_modules():
    events = Events().feed("o1 " * 5)
    assert events.places("train") == [1, 2, 3, 4]


def test_replays_of_a_cuda_graph_are_steps():
    assert Events(has_optimizer=False).feed("f o1 f o1 " + "r " * 6).places("train") == [2, *range(6, 10)]


def test_replays_between_which_an_optimizer_steps_are_none():
    assert Events().feed("r o1 " * 5).places("train") == [3, 5, 7, 9]


def test_an_optimizer_that_is_made_anew_in_every_iteration():
    events = Events().feed("f o1a f o1b f o1c f o1d")
    assert events.places("train") == [2, 4, 6]


def test_an_optimizer_that_wraps_another():
    events = Events().feed("f o1a o1b " * 4)
    assert events.places("train") == [3, 6, 9]


def test_closures_that_run_the_model_many_times():
    events = Events().feed("f f f o1 " * 4)
    assert events.places("train") == [4, 8, 12]


def test_an_evaluation_loop_has_its_own_steps():
    events = Events().feed("f o1 f o1 e e e e f o1 f o1")
    assert events.kinds() == "teeett"
    assert events.places("eval") == [5, 6, 7]


def test_evaluation_phases_are_apart():
    events = Events().feed("f o1 e e e f o1 e e e")
    pairs = [(previous, mark) for kind, previous, mark in events.confirmed if kind == "eval"]
    assert [mark - previous for previous, mark in pairs] == [1, 1, 1, 1]
    assert pairs[1][1] != pairs[2][0]


def test_two_models_in_one_evaluation_are_one_step():
    assert Events().feed("e:a e:b " * 4).kinds() == "eee"


def test_a_teacher_in_eval_mode_is_no_evaluation_loop():
    assert Events().feed("e:teacher f:student o1 " * 5).kinds() == "tttt"


def test_inference_without_an_optimizer_steps_by_forwards():
    assert Events(has_optimizer=False).feed("f f f f").kinds() == "eee"


def test_batches_count_only_where_nothing_else_does():
    assert Events(has_optimizer=False).feed("b b b").kinds() == "ee"
    assert Events(has_optimizer=False).feed("b e b e b e b e").places("eval") == [3, 5, 7]
    assert Events().feed("b f o1 b f o1 b f o1").kinds() == "tt"


def test_an_explicit_step_takes_over():
    events = Events().feed("f o1 x f o1 x f o1 x f o1 f o1")
    assert events.places("explicit") == [2, 5, 8]
    assert events.kinds().lstrip("t") == "eee"
    assert events.stepper.boundary == "explicit"


@pytest.mark.parametrize(
    ("words", "boundary"),
    [("", "none"), ("f o1", "optimizer"), ("e e", "forward"), ("x", "explicit"), ("e e f o1", "optimizer")],
)
def test_what_marks_the_steps_is_known(words, boundary):
    assert Events().feed(words).stepper.boundary == boundary
