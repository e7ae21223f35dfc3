"""Where steps begin and end, from events alone."""

import pytest

from gpulint.runtime.observing.stepping import Numbers, Stepper


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

    def feed(self, words: str) -> "Events":
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


TRAINING = {
    "a plain loop steps at the next forward": ("f o1 " * 5, [2, 4, 6, 8]),
    "accumulation": ("f f f f o1 " * 5, [5, 10, 15, 20]),
    "two optimizers in one iteration": ("f:g f:d o1 f:d o2 " * 5, [5, 10, 15, 20]),
    "an optimizer per parameter in backward": ("f o1 o2 o3 " * 5, [4, 8, 12, 16]),
    "an optimizer without modules": ("o1 " * 5, [1, 2, 3, 4]),
    "replays between which an optimizer steps": ("r o1 " * 5, [3, 5, 7, 9]),
    "an optimizer that is made anew": ("f o1a f o1b f o1c f o1d", [2, 4, 6]),
    "an optimizer that wraps another": ("f o1a o1b " * 4, [3, 6, 9]),
    "closures that run the model many times": ("f f f o1 " * 4, [4, 8, 12]),
}


@pytest.mark.parametrize(("words", "places"), TRAINING.values(), ids=TRAINING)
def test_where_steps_of_training_end(words, places):
    assert Events().feed(words).places("train") == places


def test_the_first_step_begins_with_its_own_forward_and_not_with_the_run():
    events = Events().feed("f o1 f")
    assert (events.confirmed, events.marks[0]) == ([], 0)
    assert events.feed("o1").confirmed[0] == ("train", 0, 1)


def test_several_discriminator_steps_before_a_generator_step():
    assert len(Events().feed("f:d o1 f:d o1 f:d o1 f:g o2 " * 4).places("train")) == 11


def test_replays_of_a_cuda_graph_are_steps():
    assert Events(has_optimizer=False).feed("f o1 f o1 " + "r " * 6).places("train") == [2, *range(6, 10)]


KINDS = {
    "an evaluation loop has its own steps": ("f o1 f o1 e e e e f o1 f o1", True, "teeett"),
    "two models in one evaluation": ("e:a e:b " * 4, True, "eee"),
    "a teacher in eval mode is none": ("e:teacher f:student o1 " * 5, True, "tttt"),
    "inference without an optimizer": ("f f f f", False, "eee"),
    "batches where nothing else counts": ("b b b", False, "ee"),
    "batches beside training": ("b f o1 b f o1 b f o1", True, "tt"),
}


@pytest.mark.parametrize(("words", "has_optimizer", "kinds"), KINDS.values(), ids=KINDS)
def test_of_what_kind_steps_are(words, has_optimizer, kinds):
    assert Events(has_optimizer).feed(words).kinds() == kinds


def test_evaluation_phases_are_apart():
    events = Events().feed("f o1 e e e f o1 e e e")
    pairs = [(previous, mark) for kind, previous, mark in events.confirmed if kind == "eval"]
    assert [mark - previous for previous, mark in pairs] == [1, 1, 1, 1]
    assert pairs[1][1] != pairs[2][0]


def test_forwards_take_over_from_batches_and_explicit_steps_from_all():
    assert Events(has_optimizer=False).feed("b e b e b e b e").places("eval") == [3, 5, 7]
    events = Events().feed("f o1 x f o1 x f o1 x f o1 f o1")
    assert events.places("explicit") == [2, 5, 8]
    assert events.kinds().lstrip("t") == "eee"


@pytest.mark.parametrize(
    ("words", "boundary"),
    [("", "none"), ("f o1", "optimizer"), ("e e", "forward"), ("x", "explicit"), ("e e f o1", "optimizer")],
)
def test_what_marks_the_steps_is_known(words, boundary):
    assert Events().feed(words).stepper.boundary == boundary


def test_things_are_told_apart_where_ids_are_given_again():
    class Network:
        pass

    numbers = Numbers()
    first, second = Network(), Network()
    kept = numbers.of(first, "train")
    assert numbers.of(second, "train") != kept
    assert numbers.of(first, "the last batch") == kept
    del first
    heir = Network()
    assert numbers.of(heir, "train") == kept, "in the stead of one that is gone"
    other = Network()
    assert numbers.of(other, "the last batch") != kept, "its number is another's now"
