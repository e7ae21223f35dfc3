"""Lets autograd take tensors that say they are on a CUDA device, on a machine that has none.

The engine asks two things of C++: a *device guard*, which a CPU-only build has not registered, and the *CUDA hooks*,
whose answers there are no. torch has a guard that does nothing, for builds with CUDA on machines without a card; it is
put in where the registered one counts no device, so a temporary one that counts none is registered first. The hooks
are one object with a table of virtual functions; a copy of the table answers yes where the engine asks, the places
found by trying, since they differ between versions. Nothing is written into torch's own code or data but those two
pointers.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_REGISTRY = "_ZN3c104impl26device_guard_impl_registryE"
_HOOKS = "_ZN2at6detail12getCUDAHooksEv"
_CUDA = 1  # c10::DeviceType::CUDA
_SLOTS = 80  # more than the hooks have virtual functions; what lies behind is copied and never called
_kept: list[Any] = []  # what C++ points to now, for as long as the process lives


class CannotPretend(RuntimeError):
    """This build of torch does not let itself be told that there is a card."""


def pretend(torch: Any) -> None:
    """Let CUDA tensors that are fake go through autograd. Raises CannotPretend where that cannot be done; the process should
    end with `os._exit`, since C++ calls into Python from here on, also while the interpreter is taken down."""
    try:
        folder = Path(torch.__path__[0], "lib")
        _register_guard(torch, ctypes.CDLL(str(folder / "libc10.so")))
        _answer_yes(torch, ctypes.CDLL(str(folder / "libtorch_cpu.so")))
    except (OSError, ValueError, AttributeError) as error:
        raise CannotPretend(
            f"torch {torch.__version__} on {sys.platform} cannot be run with a faked GPU ({error}); "
            "forecasts were tried with torch 2.13 on Linux"
        ) from error


def _register_guard(torch: Any, c10: ctypes.CDLL) -> None:
    registry = (ctypes.c_void_p * (_CUDA + 1)).in_dll(c10, _REGISTRY)
    if registry[_CUDA] is None:
        zero = ctypes.CFUNCTYPE(ctypes.c_long)(lambda: 0)
        table = (ctypes.c_void_p * 128)(*[ctypes.cast(zero, ctypes.c_void_p).value] * 128)
        instance = (ctypes.c_void_p * 1)(ctypes.addressof(table))
        _kept.extend((zero, table, instance))
        registry[_CUDA] = ctypes.addressof(instance)
    torch._C._ensureCUDADeviceGuardSet()


def _answer_yes(torch: Any, cpu: ctypes.CDLL) -> None:
    find = getattr(cpu, _HOOKS)
    find.restype = ctypes.c_void_p
    hooks = ctypes.c_void_p.from_address(find())
    assert hooks.value is not None
    table = (ctypes.c_void_p * _SLOTS)(*(ctypes.c_void_p * _SLOTS).from_address(hooks.value))
    yes = ctypes.CFUNCTYPE(ctypes.c_bool)(lambda: True)
    _kept.extend((yes, table))
    hooks.value = ctypes.addressof(table)
    answer = ctypes.cast(yes, ctypes.c_void_p).value
    first = _first_slot(table, answer, lambda: torch.accelerator.current_accelerator() is not None)
    problem = _attempt(torch)
    for slot in range(_SLOTS):
        if problem is None:
            return
        if slot == first:
            continue
        before, table[slot] = table[slot], answer
        now = _attempt(torch)
        if now == problem:
            table[slot] = before
        problem = now
    if problem is not None:
        raise ValueError(problem)


def _first_slot(table: Any, answer: int | None, works: Callable[[], bool]) -> int:
    """The place of the function without which nothing works, now answering yes; -1 where it does already."""
    try:
        if works():
            return -1
    except AttributeError:  # before torch 2.6 there is no such question
        return -1
    for slot in range(_SLOTS):
        before, table[slot] = table[slot], answer
        if works():
            return slot
        table[slot] = before
    raise ValueError("torch does not take the answer that there is a card")


def _attempt(torch: Any) -> str | None:
    """What autograd says to a small backward on a fake card; None where it goes."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        weight = torch.ones(2, device="cuda", requires_grad=True)
        try:
            (weight * weight + weight).sum().backward()
        except RuntimeError as error:
            return str(error).splitlines()[0]
    return None
