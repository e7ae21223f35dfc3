"""Functions of torch that move data to the card, seen before they reach it: what comes from the host is real, what arrives
on the card is fake."""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode

from gpulint.forecasting.child.deciding import FOLLOWED
from gpulint.forecasting.child.tape import Tape
from gpulint.forecasting.recording import Phase

_functorch: Any = torch._C._functorch
_MOVES = ("to", "cuda")
_CERTAIN = ("arange", "zeros", "ones", "full", "eye")  # made of nothing, and the same each time
_READS = ("numpy", "tolist", "__array__")


class Moving(TorchFunctionMode):
    """Stands in for the way between host and card."""

    def __init__(self, tape: Tape) -> None:
        super().__init__()
        self.tape = tape

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "pin_memory":
            return args[0]
        if name in _READS and _is_on_card(args[0]):
            return func(self._on_host(args[0]), *args[1:], **kwargs)
        device = _device_of(name, args, kwargs)
        given = (*args, *kwargs.values())  # `nn.init` names all that it is given
        if kwargs.get("generator") is not None and (device is not None or any(map(_is_on_card, given))):
            kwargs = {key: value for key, value in kwargs.items() if key != "generator"}
        if device is None or device.type != "cuda":
            return func(*args, **kwargs)
        if name in _MOVES and args and _is_host(args[0]):
            return self._moved(args, kwargs)
        if any(map(_is_on_card, given)):
            return func(*args, **kwargs)
        return self._made(func, name, args, kwargs)

    def _on_host(self, fake: Any) -> torch.Tensor:
        known = self.tape.deciding.values(fake)
        return torch.zeros(fake.shape, dtype=fake.dtype, device="cpu") if known is None else known

    def _moved(self, args: Any, kwargs: Any) -> Any:
        """A tensor of the host, on the card: of the same strides, and no part of the graph that it had there."""
        source = args[0]
        if _functorch.is_batchedtensor(source):  # under `vmap`: what it wraps is moved
            level, dim = _functorch.maybe_get_level(source), _functorch.maybe_get_bdim(source)
            moved = self._moved((_functorch.get_unwrapped(source), *args[1:]), kwargs)
            return _functorch._add_batch_dim(moved, dim, level)
        given = [kwargs.get("dtype"), *(one for one in args[1:] if isinstance(one, torch.dtype))]
        given += [one.dtype for one in args[1:] if isinstance(one, torch.Tensor)]
        dtype = next((one for one in given if one is not None), source.dtype)
        layout = kwargs.get("memory_format")
        shaped = source.contiguous(memory_format=layout) if layout else source
        strides = _dense(shaped)
        self.tape.operator = "to"
        out = self.tape.made(
            lambda: torch.empty_strided(source.shape, strides, dtype=dtype, device="cuda"), Phase.INPUT
        )
        self.tape.deciding.remember(out, source.detach().to(dtype))
        return out.requires_grad_() if source.requires_grad and torch.is_grad_enabled() else out

    def _made(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """A tensor made on the card from nothing, or from values of the host."""
        if name in ("tensor", "as_tensor", "asarray", "scalar_tensor"):
            host = func(*args, **{**kwargs, "device": "cpu"})
            return self._moved((host,), {}) if isinstance(host, torch.Tensor) else host
        fakes = self.tape.fakes
        args = tuple(_given(fakes, one) for one in args)
        kwargs = {key: _given(fakes, one) for key, one in kwargs.items()}
        self.tape.operator = name
        out = self.tape.made(lambda: func(*args, **kwargs))
        if name in _CERTAIN and isinstance(out, FakeTensor) and out.numel() <= FOLLOWED:
            self.tape.deciding.remember(out, func(*args, **{**kwargs, "device": "cpu"}))
        return out


def _dense(source: torch.Tensor) -> tuple[int, ...]:
    """The strides that a copy has: those of the tensor where it is dense, in its order of dimensions."""
    with torch._C.DisableTorchFunctionSubclass():
        if source.is_contiguous() or source.numel() == 0:
            return tuple(torch.empty(source.shape, device="meta").stride())
        return tuple(torch.empty_like(source, device="meta").stride())


def _given(fakes: Any, value: Any) -> Any:
    """An argument as a fake run takes it: a whole number of the host is a number, a tensor a fake one."""
    if not _is_host(value):
        return value
    if not value.dim() and not value.dtype.is_floating_point:
        return int(value)
    return fakes.from_tensor(value)


def _is_host(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not _is_on_card(value)


def _is_on_card(value: Any) -> bool:
    """Whether it is a fake tensor, or one wrapped for a transform (`vmap`) that says where what it wraps is."""
    return isinstance(value, FakeTensor) or (isinstance(value, torch.Tensor) and value.is_cuda)


def _device_of(name: str, args: Any, kwargs: Any) -> torch.device | None:
    """The device that a call names."""
    named = kwargs.get("device")
    if named is None and name == "cuda":
        return torch.device("cuda", 0)
    if named is None and name in ("to", "empty_permuted"):
        named = next((one for one in map(_as_device, args[1:]) if one is not None), None)
    return _as_device(named)


def _as_device(value: Any) -> torch.device | None:
    """The device that an argument of `to` stands for; None for all else."""
    if isinstance(value, torch.Tensor):
        return value.device
    if isinstance(value, int) and not isinstance(value, bool):
        return torch.device("cuda", value)
    if isinstance(value, str):
        return torch.device(value)
    return value if isinstance(value, torch.device) else None
