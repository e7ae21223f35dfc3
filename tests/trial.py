"""Runs small programs on the CPU and tells what they did and what came of them.

`python trial.py PLAN RESULTS` reads a JSON list of `{"name", "path", "script", "card", "arguments"}`. Of a program its module is run, then each of
its functions and methods on made-up arguments; of a script it is run as `__main__`, cut short. What they left is written as
JSON by name: the events that `recording` tells of, what was returned, printed and kept; for what did not run, the kind of error.

What a parameter stands for, or a name that the program leaves open, is read off its uses: what is iterated is a loader, what
is called is a network.
"""

import argparse
import ast
import builtins
import contextlib
import gc
import importlib.util
import inspect
import io
import json
import os
import random
import re
import runpy
import signal
import socket
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from recording import Enough, Recorder, recording, tensors_in, written
from torch import nn
from torch.overrides import TorchFunctionMode

_MARK = "_on_the_card"
_INDEXING = frozenset({"__getitem__", "__setitem__", "copy_", "index_put_"})
_ELSEWHERE = frozenset(
    "__repr__ __format__ __set__ __deepcopy__ backward save _has_compatible_shallow_copy_type".split()
)


def is_device(value: Any, kind: str = "cuda") -> bool:
    """Whether a value names a device of that kind."""
    text = value.type if isinstance(value, torch.device) else value
    return isinstance(text, str) and text.partition(":")[0] == kind


def is_marked(tensor: torch.Tensor) -> bool:
    return bool(getattr(tensor, _MARK, False))


def mark(module: nn.Module) -> nn.Module:
    """Put a network on the card."""
    for tensor in (*module.parameters(), *module.buffers()):
        setattr(tensor, _MARK, True)
    return module


class PretendedCard(TorchFunctionMode):
    """Everything asked for on a GPU is made on the CPU, and marked."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if func is torch.Tensor.cuda or (func is torch.Tensor.to and _goes_to_card(args, kwargs)):
            kwargs.pop("device", None)
            rest = tuple("cpu" if is_device(value) else value for value in args[1:])
            moved = args[0] if is_marked(args[0]) else args[0].clone()
            return _marked(torch.Tensor.to(moved, *rest, **kwargs) if func is torch.Tensor.to else moved)
        if func is torch.Tensor.cpu or (func is torch.Tensor.to and any(is_device(v, "cpu") for v in args)):
            return _marked(args[0].clone(), False)
        given = [tensor for tensor in tensors_in((args, kwargs)) if name not in _ELSEWHERE]
        on_card = any(map(is_marked, given))
        if name == "numpy" and on_card:
            raise TypeError("can't convert cuda:0 device type tensor to numpy.")
        if on_card and name not in _INDEXING and any(one.dim() and not is_marked(one) for one in given):
            raise RuntimeError(f"Expected all tensors to be on the same device: {name}.")
        asked = is_device(kwargs.get("device"))
        if "device" in kwargs:
            kwargs["device"] = "cpu"
        made = func(*args, **kwargs)
        if name == "__get__" and isinstance(made, torch.device):
            return torch.device("cuda") if on_card else made
        if name == "is_cuda" or (name == "__get__" and made is False and "is_cuda" in str(func)):
            return on_card
        for tensor in tensors_in(made):
            if asked or (on_card and not is_marked(tensor)):
                setattr(tensor, _MARK, True)
        return made


def _goes_to_card(args: Any, kwargs: Any) -> bool:
    places = (*args[1:], kwargs.get("device"))
    return any(map(is_device, places)) or any(
        isinstance(one, torch.Tensor) and is_marked(one) for one in places
    )


def _marked(tensor: torch.Tensor, on: bool = True) -> torch.Tensor:
    setattr(tensor, _MARK, on)
    return tensor


# -- programs and what they are given ------------------------------------------------------------------------

WIDTH = BATCH = 8
_LOSS = re.compile(r"(?i)loss|crit|bce|mse|^ce$")
_NETWORK = re.compile(r"(?i)model$|net$|^net|critic|student|teacher|encoder|policy")
_COUNT = re.compile(r"(?i)epochs?$|steps?$|^n$|^n_|^num_|size|limit|horizon")
_LOADER = re.compile(r"(?i)loader|batches|dataset|^data$")
_LABELS = re.compile(r"(?i)label|target|^ys?$|^answers?$")
_LENGTH = re.compile(r"(?i)epochs?$|steps?$|episodes?$|iters?$|updates$|rounds?$|samples$")
_SHORT = 4
# Functions that give a loss, or a part of one: their callers go backward.
_GIVES_LOSS = re.compile(r"(?i)loss|forward|step|objective|penalty|energy")
_card: list[bool] = []  # filled while a program runs on a pretended card
_ticks: list[int] = []
_PART_OF_STATE = (torch.Tensor, int, float, str, bool, list, tuple, dict)


class Net(nn.Module):
    """Takes any tensors and gives scores."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.Dropout(0.0)

    def forward(self, *given: Any, **named: Any) -> torch.Tensor:
        total = torch.zeros((), device="cuda" if _card else "cpu").expand(1)
        for value in (*given, *named.values()):
            if isinstance(value, torch.Tensor) and value.numel():
                # Wherever it is given: what is asked is whether others mix the places.
                value = value.cuda() if _card else value
                flat = value.float().reshape(value.shape[0] if value.dim() else 1, -1)
                total = total + nn.functional.pad(flat, (0, WIDTH))[:, :WIDTH]
        return torch.tanh(self.layer(total.expand(-1, WIDTH) if total.dim() > 1 else total.expand(1, WIDTH)))


class OnTheCpu(TorchFunctionMode):
    """Everything asked for on another device is made on the CPU."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if "device" in kwargs:
            kwargs["device"] = "cpu"
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.Tensor.to:
            args = tuple("cpu" if _is_device(value) else value for value in args)
        return func(*args, **kwargs)


def _is_device(value: Any) -> bool:
    return isinstance(value, torch.device) or is_device(value)


@contextlib.contextmanager
def _on_pretended_card() -> Iterator[None]:
    """A card in sight, and networks that are given on it."""
    with PretendedCard(), patch.object(torch.cuda, "is_available", lambda: True):
        _card.append(True)
        try:
            yield
        finally:
            _card.pop()


def _moved(module: nn.Module, *places: Any) -> nn.Module:
    if _card and any(map(is_device, places)):
        mark(module)
    return module


def _loss(*given: Any, **_: Any) -> torch.Tensor:
    total = torch.zeros(())
    for sign, value in zip((1, -1, 1), given, strict=False):
        total = total + sign * (value.float().mean() if isinstance(value, torch.Tensor) else 0)
    return total.square()


class Absent:
    """Imports what a program asks for and is not installed: decorators that leave things as they are, and makers of
    networks."""

    def __init__(self) -> None:
        self.wanted: set[str] = set()

    def find_spec(self, name: str, *_: Any) -> Any:
        if name.partition(".")[0] not in self.wanted:
            return None
        return importlib.util.spec_from_loader(name, self)  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> Any:
        module = types.ModuleType(spec.name)
        module.__path__ = []
        module.__getattr__ = _missing  # type: ignore[method-assign]
        return module

    def exec_module(self, module: Any) -> None:
        """There is nothing to run."""


def _missing(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return StandIn()


def _imports(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found - {"torch"}


class StandIn:
    """A class or a function that is not there."""

    def __call__(self, *given: Any, **_: Any) -> Any:
        return given[0] if len(given) == 1 and (isinstance(given[0], list) or callable(given[0])) else Net()

    def __getattr__(self, name: str) -> Any:
        return _missing(name)

    def __mro_entries__(self, bases: Any) -> Any:
        return (nn.Module,)


class Uses(ast.NodeVisitor):
    """What a function, or a class, does with its names."""

    def __init__(self, tree: ast.AST) -> None:
        self.called: set[str] = set()
        self.stepped: set[str] = set()
        self.rounds: dict[str, ast.expr] = {}
        self.sized: set[str] = set()
        self.visit(tree)

    def visit_Call(self, node: ast.Call) -> None:
        name = ast.unparse(node.func)
        self.called.add(name)
        owner, _, method = name.rpartition(".")
        if method in ("step", "zero_grad") and owner:
            self.stepped.add(owner)
        if method in ("parameters", "eval", "train", "state_dict", "load_state_dict", "forward") and owner:
            self.called.add(owner)
        if name in ("range", "torch.randn", "torch.rand"):
            self.sized |= {ast.unparse(part) for part in node.args}
        if name in ("enumerate", "tqdm", "iter") and node.args:
            self.rounds.setdefault(ast.unparse(node.args[0]), ast.Name("x"))
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        iterable, target = node.iter, node.target
        while isinstance(iterable, ast.Call) and iterable.args and ast.unparse(iterable.func) != "range":
            if ast.unparse(iterable.func) == "enumerate" and isinstance(target, ast.Tuple):
                target = target.elts[1]
            iterable = iterable.args[0]
        self.rounds[ast.unparse(iterable)] = target
        self.generic_visit(node)


def _batch(target: ast.expr) -> Any:
    if isinstance(target, (ast.Tuple, ast.List)):
        items = [_batch(item) for item in target.elts]
        if len(items) > 1 and not isinstance(target.elts[1], ast.Tuple):
            items[1] = _labels()
        return tuple(items)
    return torch.randn(BATCH, WIDTH)


def _labels() -> torch.Tensor:
    return torch.randint(0, 2, (BATCH,))


def _argument(name: str, uses: Uses, nets: list[nn.Module]) -> Any:
    own = {name, f"self.{name}", f"self._{name}"}
    if own & uses.stepped and not own & uses.called:
        return torch.optim.SGD([p for net in nets for p in net.parameters()] or [torch.zeros(1)], 0.1)
    if name in ("device", "rank"):
        return "cuda" if _card else "cpu"
    if _LOSS.search(name):
        return _loss
    if own & uses.rounds.keys():
        target = next(uses.rounds[path] for path in own if path in uses.rounds)
        return [_batch(target) for _ in range(3)]
    if own & uses.called or _NETWORK.search(name):
        nets.append(_moved(Net(), "cuda"))
        return nets[-1]
    if own & uses.sized or _COUNT.search(name):
        return 2
    if _LOADER.search(name):
        return [(torch.randn(BATCH, WIDTH), _labels()) for _ in range(3)]
    return _labels() if _LABELS.search(name) else torch.randn(BATCH, WIDTH)


def _arguments(function: Any, uses: Uses, nets: list[nn.Module]) -> dict[str, Any]:
    params = [
        p
        for p in inspect.signature(function).parameters.values()
        if p.name not in ("self", "cls") and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    given: dict[str, Any] = {}
    optimizers = [p for p in params if {p.name, f"self.{p.name}"} & uses.stepped]
    for param in [p for p in params if p not in optimizers] + optimizers:
        on_device = isinstance(param.default, str) and _is_device(param.default) and not _card
        if param.default is param.empty or on_device:
            given[param.name] = (
                "cpu" if param.default is not param.empty else _argument(param.name, uses, nets)
            )
    return given


class Printed(io.StringIO):
    """What a program prints until it ends, or until its time is `over`."""

    over = False


@contextlib.contextmanager
def _limits(seconds: int, printed: Printed) -> Iterator[None]:
    def stop(*_: Any) -> None:
        printed.over = True
        raise TimeoutError

    # Time of the processor, so that a slow machine does not decide; time of the clock for what waits.
    signal.signal(signal.SIGPROF, stop)
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, 20 * seconds)
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _outcome(
    name: str,
    call: Callable[[], Any],
    nets: list[nn.Module],
    state: Callable[[], Any],
    recorder: Recorder,
    seconds: int = 1,
) -> dict[str, Any]:
    """What a call did: its events, even where it raised, and what it left."""
    torch.manual_seed(0)
    random.seed(0)
    _ticks.clear()
    torch.set_grad_enabled(True)
    recorder.begin()
    left: dict[str, Any] = {}
    printed = Printed()
    try:
        with _limits(seconds, printed):
            result = call()
            if _GIVES_LOSS.search(name):
                _go_back(result, nets, recorder)
            left = {"returned": written(result), "kept": written(state()), "printed": printed.getvalue()}
            left["grad"] = torch.is_grad_enabled()
    except (Exception, SystemExit, Enough) as error:
        # What catches everything on the way, as `load_state_dict` does, gives the end of time another name.
        cut = printed.over or isinstance(error, Enough)
        kind = "TimeoutError" if cut else type(error).__name__
        left = {"error": kind, "text": str(error)[:200]}
    return {"events": recorder.end(), **left}


def _go_back(result: Any, nets: list[nn.Module], recorder: Recorder) -> None:
    """The backward that the caller of a loss would run, where the call itself ran none."""
    roots = [value for value in tensors_in(result) if value.requires_grad and value.is_floating_point()]
    if roots and nets and not any(kind in ("backward", "grad of") for kind, *_ in recorder.events or ()):
        torch.autograd.backward([root.sum() for root in roots])
        recorder.note("gradients", [written(p.grad) for net in nets for p in net.parameters()])


def _program(path: str, absent: Absent, recorder: Recorder, card: bool) -> dict[str, Any]:
    """The outcome of a module and, where that ran, of each of its functions and methods."""
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    absent.wanted = _imports(tree)
    spec = importlib.util.spec_from_file_location("trial_program", path)
    module = importlib.util.module_from_spec(spec)
    nets: list[nn.Module] = []

    def load() -> None:
        uses = Uses(tree)
        for name in _open_names(tree):
            setattr(module, name, _argument(name, uses, nets))
        spec.loader.exec_module(module)  # type: ignore[union-attr]

    with _on_pretended_card() if card else OnTheCpu(), _no_files():
        found = {"<module>": _outcome("<module>", load, nets, lambda: nets, recorder)}
        if "error" in found["<module>"]:
            return found
        for node in tree.body:
            uses = Uses(node)
            if isinstance(node, ast.FunctionDef):
                found[node.name] = _function(getattr(module, node.name), uses, recorder)
            elif isinstance(node, ast.ClassDef):
                cls = getattr(module, node.name)
                if isinstance(cls, type) and issubclass(cls, torch.autograd.Function):
                    found[node.name] = _operation(cls, uses, recorder)
                    continue
                for method in node.body:
                    if isinstance(method, ast.FunctionDef) and method.name != "__init__":
                        found[f"{node.name}.{method.name}"] = _method(cls, method, uses, recorder)
    return found


class Checkpoint(dict[str, Any]):
    """What a program that has no file loads: whatever it asks for is in it."""

    def __missing__(self, key: str) -> Any:
        return 1 if _COUNT.search(key) else self


@contextlib.contextmanager
def _no_files() -> Iterator[None]:
    """Saves nothing and loads a `Checkpoint`, which every `load_state_dict` is content with."""

    def contented(restore: Callable[..., Any]) -> Callable[..., Any]:
        return (
            lambda self, state, *a, **k: None if type(state) is Checkpoint else restore(self, state, *a, **k)
        )

    with contextlib.ExitStack() as stack:
        stack.enter_context(patch.object(torch, "load", lambda *_, **__: Checkpoint()))
        stack.enter_context(patch.object(torch, "save", lambda *_, **__: None))
        for owner in (nn.Module, torch.optim.Optimizer):
            stack.enter_context(patch.object(owner, "load_state_dict", contented(owner.load_state_dict)))
        yield


def _open_names(tree: ast.Module) -> list[str]:
    """The names that a program reads and nowhere binds, as the examples of the documentation do with `loader`."""
    bound = set(dir(builtins)) | {"__file__", "__name__"}
    read: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                read[node.id] = None
            else:
                bound.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            bound.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
    return [name for name in read if name not in bound]


def _script(path: str, given: list[str], recorder: Recorder) -> dict[str, Any]:
    """The outcome of a whole script with the modules of its folder, in a directory of its own."""
    script = Path(path)
    before, known, arguments = set(sys.modules), list(sys.path), sys.argv
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.path.insert(0, str(script.parent))
        sys.argv = [path, *given]
        try:
            return {"<script>": _outcome("<script>", lambda: _run(path), [], lambda: None, recorder, 20)}
        finally:
            os.chdir(here)
            sys.path[:], sys.argv = known, arguments
            for name in set(sys.modules) - before:
                origin = getattr(sys.modules[name], "__file__", None) or ""
                if origin.startswith(str(script.parent)):
                    del sys.modules[name]


def _run(path: str) -> None:
    runpy.run_path(path, run_name="__main__")


def _shortened(parse: Callable[..., argparse.Namespace]) -> Callable[..., argparse.Namespace]:
    """A few steps of each epoch show what all of them do."""

    def parsed(parser: argparse.ArgumentParser, *args: Any, **kwargs: Any) -> argparse.Namespace:
        options = parse(parser, *args, **kwargs)
        for name, value in vars(options).items():
            if isinstance(value, int) and not isinstance(value, bool) and _LENGTH.search(name):
                setattr(options, name, min(value, 2 if name.startswith("epoch") else _SHORT))
        return options

    return parsed


def _operation(cls: type[torch.autograd.Function], uses: Uses, recorder: Recorder) -> dict[str, Any]:
    """What an operation gives for a network's output, and the gradients that it hands back."""
    nets: list[nn.Module] = [_moved(Net(), "cuda")]

    def call() -> Any:
        _, *names = (
            inspect.signature(cls.forward).parameters if "setup_context" not in vars(cls) else ("", "x")
        )
        given = {name: _argument(name, uses, nets) for name in names}
        first = next(name for name, value in given.items() if isinstance(value, torch.Tensor))
        result = cls.apply(*{**given, first: nets[0](given[first])}.values())
        _go_back(result, nets, recorder)
        return result

    return _outcome(cls.__name__, call, nets, lambda: nets, recorder)


def _function(function: Any, uses: Uses, recorder: Recorder) -> dict[str, Any]:
    nets: list[nn.Module] = []

    def call() -> Any:
        return function(**_arguments(function, uses, nets))

    return _outcome(function.__name__, call, nets, lambda: nets, recorder)


def _method(cls: Any, method: ast.FunctionDef, uses: Uses, recorder: Recorder) -> dict[str, Any]:
    nets: list[nn.Module] = []
    made: list[Any] = []

    def call() -> Any:
        made.append(cls(**_arguments(cls.__init__, uses, nets)))
        own = Uses(method)
        own.called |= uses.called
        bound = getattr(made[0], method.name)
        return bound if not callable(bound) else bound(**_arguments(bound, own, nets))

    def state() -> Any:
        return [*nets, *(v for v in vars(made[0]).values() if isinstance(v, (*_PART_OF_STATE, nn.Module)))]

    return _outcome(method.name, call, nets, state, recorder)


def _repeated(draw: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """`uniform_` or `normal_` that draws a few numbers for large tensors and repeats them: to draw a gigabyte of weights
    takes seconds."""
    drawn = torch.empty(65_521)  # a prime: no two rows of weights are alike

    def fill(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        times = self.numel() // len(drawn)
        if times < 2 or not self.is_contiguous():
            return draw(self, *args, **kwargs)
        flat = self.view(-1)
        flat[: times * len(drawn)].view(times, len(drawn)).copy_(draw(drawn, *args, **kwargs))
        flat[times * len(drawn) :].copy_(drawn[: len(flat) % len(drawn)])
        return self

    return fill


def _tick() -> float:
    """A clock that ticks with each look at it, from the beginning for each function."""
    _ticks.append(1)
    return len(_ticks) / 1000


def _no_network(*_: Any, **__: Any) -> Any:
    raise OSError("there is no network in a trial")


def main(plan: str, results: str) -> None:
    torch.set_num_threads(1)
    socket.socket.connect = _no_network  # type: ignore[method-assign]
    nn.Module.cuda = lambda self, *_: _moved(self, "cuda")  # type: ignore[method-assign,assignment]
    to = nn.Module.to
    nn.Module.to = lambda self, *a, **k: _moved(  # type: ignore[method-assign,assignment]
        to(
            self,
            *("cpu" if _is_device(v) else v for v in a),
            **{**k, **({"device": "cpu"} if "device" in k else {})},
        ),
        *a,
        k.get("device"),
    )
    # What a program prints of its clocks is the same each time.
    for name in ("time", "perf_counter", "monotonic"):
        setattr(time, name, _tick)
    torch.cuda.synchronize = lambda *_: None
    for name in ("uniform_", "normal_"):
        setattr(torch.Tensor, name, _repeated(getattr(torch.Tensor, name)))
    argparse.ArgumentParser.parse_args = _shortened(argparse.ArgumentParser.parse_args)  # type: ignore[method-assign]
    torch.optim.SGD([torch.zeros(1)], 0.1)  # loads what torch loads late
    absent = Absent()
    sys.meta_path.append(absent)  # type: ignore[arg-type]
    found: dict[str, Any] = {}
    with recording() as recorder:
        for trial in json.loads(Path(plan).read_text(encoding="utf-8")):
            absent.wanted = set()
            path = trial["path"]
            gc.collect()
            gc.freeze()  # programs that collect garbage would look through what all before them left to be told
            found[trial["name"]] = (
                _script(path, trial["arguments"], recorder)
                if trial["script"]
                else _program(path, absent, recorder, trial["card"])
            )
    Path(results).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
