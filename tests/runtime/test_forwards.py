"""What becomes of a forward's graph: whether a backward goes through it, without touching the script's tensors."""

import copy
import functools
import gc
import io
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from sampling import Watch

from gpulint.runtime.parent.verdict import Wasted, verify
from gpulint.runtime.record.result import ForwardFigures, RunResult

torch = pytest.importorskip("torch")

HERE = str(Path(__file__).parent)
nn = torch.nn
checkpoint = pytest.importorskip("torch.utils.checkpoint").checkpoint
TIMES = 6
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def network(wide: int = 256) -> torch.nn.Module:
    layers = [nn.Linear(64, wide), nn.Tanh(), nn.Linear(wide, wide), nn.Tanh(), nn.Linear(wide, 64)]
    return nn.Sequential(*layers).to(DEVICE)


def batch() -> torch.Tensor:
    return torch.randn(64, 64, device=DEVICE)


def stepped(model: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=1e-3)


def watched(program: Callable[[], None]) -> tuple[list[ForwardFigures], list[Wasted]]:
    """The forwards that keep something with grad enabled, and what is told of them."""
    with Watch(home=HERE, device=DEVICE) as watch:
        program()
    found = verify("program", RunResult((), watch.result.end, 1.0, (watch.result,)), [])
    return [forward for forward in watch.result.forwards if forward.grad and forward.weights], list(
        found.wasted
    )


def mean_square(out: torch.Tensor) -> torch.Tensor:
    return out.square().mean()


def train(loss_of: Callable[[], torch.Tensor], *models: torch.nn.Module, times: int = TIMES) -> None:
    optimizer = torch.optim.SGD([weight for model in models for weight in model.parameters()], lr=1e-3)
    for _ in range(times):
        optimizer.zero_grad()
        loss_of().backward()
        optimizer.step()


# -- programs whose graphs are needed, or too small or too few to be told -------------------------------------


def training() -> None:
    model = network()
    train(lambda: mean_square(model(batch())), model)


def attack_in_eval_mode() -> None:
    model = network().eval()
    for _ in range(TIMES):
        x = batch()
        for _ in range(3):
            x = x.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(mean_square(model(x)), x)
            x = x + 0.1 * gradient.sign()


def features_by_hooks() -> None:
    """The critic's own output is left; the loss is made of what a hook has saved."""
    student, critic = network(), network().eval().requires_grad_(False)
    saved: list[torch.Tensor] = []
    critic[1].register_forward_hook(lambda module, args, out: saved.append(out))

    def loss() -> torch.Tensor:
        critic(student(batch()))
        return mean_square(saved.pop())

    train(loss, student)


class Changed(nn.Module):
    """Hands on what it makes of a network's output."""

    def __init__(self, change: Callable[[torch.Tensor], object]) -> None:
        super().__init__()
        self.inside, self.change = network(), change

    def forward(self, x: torch.Tensor) -> object:
        return self.change(self.inside(x))


def output_changed_in_place() -> None:
    model = Changed(lambda out: out.view(32, 128))
    train(lambda: mean_square(model(batch()).mul_(2.0)), model)


def checkpointed(use_reentrant: bool = False) -> None:
    first, second = network(), network()

    def run(x: torch.Tensor) -> torch.Tensor:
        hidden = first(x)
        return second(hidden)

    def loss() -> torch.Tensor:
        return mean_square(checkpoint(run, batch().requires_grad_(), use_reentrant=use_reentrant))

    train(loss, first, second)


def gradient_of_a_gradient() -> None:
    critic = network()

    def loss() -> torch.Tensor:
        x = batch().requires_grad_()
        return mean_square(torch.autograd.grad(critic(x).sum(), x, create_graph=True)[0])

    train(loss, critic)


def transformed() -> None:
    model = network()
    weights = dict(model.named_parameters())

    def loss(weights: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        return mean_square(torch.func.functional_call(model, weights, (x,)))

    gradient = torch.func.grad(loss)
    for _ in range(TIMES):
        gradient(weights, batch())
        torch.func.vmap(gradient, in_dims=(None, 0))(weights, torch.randn(2, 8, 64, device=DEVICE))


def compiled_as_eager() -> None:
    model = network()
    fast = torch.compile(model, backend="eager")
    train(lambda: mean_square(fast(batch())), model)


def tried_once() -> None:
    network()(batch())
    training()


def all_outputs_held() -> None:
    model = network().eval()
    held = [model(batch()) for _ in range(TIMES)]
    mean_square(torch.cat(held)).backward()


def a_small_one() -> None:
    model = nn.Linear(64, 4).to(DEVICE).eval()
    for _ in range(TIMES):
        model(batch()[:4]).argmax(-1).tolist()


NEEDED = [
    training,
    attack_in_eval_mode,
    features_by_hooks,
    gradient_of_a_gradient,
    output_changed_in_place,
    all_outputs_held,
    checkpointed,
]
BY_REENTRY = functools.partial(checkpointed, use_reentrant=True)
UNTOLD = [BY_REENTRY, transformed, compiled_as_eager, tried_once, a_small_one]


@pytest.mark.parametrize("program", NEEDED)
def test_a_backward_is_seen(program):
    forwards, told = watched(program)
    assert told == []
    assert forwards
    for forward in forwards:
        assert (forward.visited > 0, forward.dead) == (True, 0), forward


@pytest.mark.parametrize("program", UNTOLD)
def test_nothing_is_told(program):
    assert watched(program)[1] == []


# -- programs whose graphs nobody needs -----------------------------------------------------------------------


def evaluation() -> None:
    model = network().eval()
    right = 0.0
    for _ in range(20):
        right += model(batch()).argmax(-1).float().mean().item()  # told


def evaluation_in_train_mode() -> None:
    model = network()
    for _ in range(20):
        model(batch()).square().mean().item()  # told


def teacher() -> None:
    student, guide = network(), network().eval()

    def loss() -> torch.Tensor:
        x = batch()
        return mean_square(student(x) - guide(x).detach())  # told

    train(loss, student, times=20)


def teacher_within_the_model() -> None:
    class Distilled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.student, self.guide = network(), network().eval()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return mean_square(self.student(x) - self.guide(x).detach())  # told

    model = Distilled()
    train(lambda: model(batch()), model.student, times=20)


@dataclass
class Answer:
    scores: torch.Tensor
    more: dict[str, tuple[torch.Tensor, int]]


def answers_in_a_dataclass() -> None:
    model = Changed(lambda out: Answer(out, {"twice": (out * 2, 1)})).eval()
    for _ in range(20):
        model(batch()).scores.sum().item()  # told


@pytest.mark.parametrize(
    "program",
    [evaluation, evaluation_in_train_mode, teacher, teacher_within_the_model, answers_in_a_dataclass],
)
def test_a_forward_for_nothing_is_told_at_its_line(program):
    _, (told,) = watched(program)
    mode = "train" if program is evaluation_in_train_mode else "eval"
    source = Path(__file__).read_text().splitlines()
    assert source[told.line - 1].endswith("# told")
    assert told.function.startswith(program.__name__)
    assert (told.file, told.mode, told.count) == (__file__, mode, 20)
    # two hidden layers are saved for the backward, and nothing else that was not there before
    assert told.bytes == 2 * 64 * 256 * 4
    assert f"ran 20 times with grad enabled in {mode} mode" in told.text
    assert "128.00 KiB" in told.text


def test_one_call_for_nothing_among_others_is_not_told():
    def program() -> None:
        model = network()
        optimizer = stepped(model)
        for number in range(20):
            loss = model(batch()).square().mean()
            if number % 2:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

    (forward,), told = watched(program)
    assert told == []
    assert (forward.visited, forward.dead) == (5, 4)


# -- the script's own -----------------------------------------------------------------------------------------


def test_nothing_of_the_script_changes(tmp_path):
    def run() -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = network()
        optimizer = stepped(model)
        seen = []
        for _ in range(4):
            out = model(batch())
            assert not out._backward_hooks
            torch.save(out.detach(), io.BytesIO())
            copy.deepcopy(out.detach())
            torch.save(out, tmp_path / "out.pt")
            loss = out.square().mean()
            optimizer.zero_grad()
            loss.backward(retain_graph=True)
            seen += [parameter.grad.clone() for parameter in model.parameters()]
            loss.backward()
            optimizer.step()
            seen += [parameter.detach().clone() for parameter in model.parameters()]
        return seen

    plain = run()
    with Watch(home=HERE, device=DEVICE):
        watched = run()
    assert all(torch.equal(a, b) for a, b in zip(plain, watched, strict=True))


def test_graphs_die_when_the_script_lets_go():
    model = network()
    gc.disable()
    try:
        with Watch(home=HERE, device=DEVICE):
            out = model(batch())
            died = weakref.ref(out.grad_fn.metadata.setdefault("mark", network()))
            del out
            assert died() is None
    finally:
        gc.enable()


def test_calls_beyond_the_first_cost_no_more():
    """The first eight are followed, then the 16th, the 32nd, the 64th."""
    model = network()
    hooks = []
    with Watch(home=HERE, device=DEVICE):
        for _ in range(70):
            out = model(batch())
            hooks.append(len(out.grad_fn.register_prehook(lambda gradients: None).hooks_dict_ref()) - 1)
            del out
    assert [number for number, count in enumerate(hooks, 1) if count] == [*range(1, 9), 16, 32, 64]
