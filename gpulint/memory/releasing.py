"""Taking a model off the device while the caller still holds it.

`del model` in a helper drops the helper's name and nothing else. What frees memory is to exchange the contents
of the very objects that the caller holds: a parameter stays the same object and gets another storage.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gpulint.memory.device import allocated, cuda_started, torch_module
from gpulint.memory.live import storage_bytes, storage_key
from gpulint.memory.transfer import Copier
from gpulint.units import format_bytes


@dataclass(frozen=True, slots=True)
class Released:
    """What `release` took off the device, in bytes; shared memory counts once.

    `freed` is the fall of `memory_allocated` on all devices, None without CUDA. If it is smaller than `moved`,
    something else still uses that memory: `memory.clear(force=True)` names it.
    """

    parameters: int
    gradients: int
    buffers: int
    optimizer_state: int
    freed: int | None

    @property
    def moved(self) -> int:
        return self.parameters + self.gradients + self.buffers + self.optimizer_state

    def __str__(self) -> str:
        text = (
            f"released {format_bytes(self.moved)}: parameters {format_bytes(self.parameters)}, gradients"
            f" {format_bytes(self.gradients)}, buffers {format_bytes(self.buffers)}, optimizer state"
            f" {format_bytes(self.optimizer_state)}"
        )
        if self.freed is None:
            return f"{text} (no CUDA in use)"
        return f"{text}; allocated fell by {format_bytes(self.freed)}"


def release(model: Any = None, optimizer: Any = None, *, keep: bool = True) -> Released:
    """Free the device memory of `model` and `optimizer` although the caller goes on holding both.

    `model` is a module or several in a list, `optimizer` likewise. Parameters and buffers get their content on
    the CPU, gradients become None, the optimizer's state moves to the CPU. With `keep=False` nothing is copied:
    parameters and buffers become empty and the state is cleared; use it when the model is not needed again.
    Tied parameters stay tied. The freed memory goes back to the driver.

    A kept model continues on the CPU, or on the device again after `restore(model, optimizer, device)`.
    """
    before = allocated()
    exchange = _Exchange(keep)
    gradients = parameters = buffers = state = 0
    modules, optimizers = _several(model), _several(optimizer)
    held = {id(p): p for m in modules for p in m.parameters()}
    held |= {id(p): p for o in optimizers for g in o.param_groups for p in g["params"]}
    for parameter in held.values():
        if parameter.grad is not None:
            gradients += storage_bytes(parameter.grad)
            parameter.grad = None
    for parameter in held.values():
        parameters += exchange.content(parameter)
    for module in modules:
        buffers += exchange.attributes(module)
    for each in optimizers:
        for entry in each.state.values():
            state += exchange.state(entry)
        if not keep:
            each.state.clear()
    del exchange
    gc.collect()
    if cuda_started():
        torch_module().cuda.empty_cache()
    freed = before - allocated() if cuda_started() else None
    return Released(parameters, gradients, buffers, state, freed)


def restore(model: Any = None, optimizer: Any = None, device: Any = "cuda") -> None:
    """Put a model and an optimizer that `release` kept onto `device`: the same parameter objects, the state of
    each parameter beside it. Scalar step counts stay on the CPU, where torch's optimizers keep them."""
    modules, optimizers = _several(model), _several(optimizer)
    for module in modules:
        module.to(device)
    for each in optimizers:
        capturable = any(g.get("capturable") or g.get("fused") for g in each.param_groups)
        for entry in each.state.values():
            for name, value in list(entry.items()) if isinstance(entry, dict) else ():
                if name == "step" and not capturable:
                    continue
                entry[name] = _mapped(lambda tensor: tensor.to(device), value)


def _several(given: Any) -> list[Any]:
    if given is None:
        return []
    return list(given) if isinstance(given, (list, tuple, set)) else [given]


def _mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """A value with each tensor in it changed."""
    from torch.utils._pytree import tree_map_only

    return tree_map_only(torch_module().Tensor, change, value)


class _Exchange:
    """Gives tensors other contents; knows which memory it has seen, so that ties survive and count once."""

    def __init__(self, keep: bool) -> None:
        self.keep = keep
        self.torch = torch_module()
        self.copier = Copier(set())
        self.seen: set[Any] = set()
        # Old contents stay alive until the end, or their addresses would be taken for those of other tensors.
        self.old: list[Any] = []

    def _other(self, tensor: Any) -> tuple[Any, int]:
        """The new content of `tensor`, and the bytes that it makes free."""
        if self.keep and tensor.device.type in ("cpu", "meta"):
            return tensor, 0
        key = storage_key(tensor)
        first = self.keep if key is None else key not in self.seen
        self.seen.add(key)
        empty = self.torch.empty
        made = self.copier.tensor(tensor) if self.keep else empty(0, dtype=tensor.dtype, device=tensor.device)
        return made, storage_bytes(tensor) if first else 0

    def content(self, tensor: Any) -> int:
        """Exchange the storage under a parameter or buffer that others hold by reference."""
        made, size = self._other(tensor)
        if made is not tensor:
            self.old.append(tensor.data)
            tensor.data = made
        return size

    def attributes(self, module: Any) -> int:
        """Buffers, and tensors that lie in plain attributes of a module or its children."""
        total = 0
        for child in module.modules():
            for name, value in list(vars(child).items()):
                if isinstance(value, self.torch.Tensor) and value.grad_fn is not None:
                    # A kept output: its graph would hold every activation behind it.
                    made, size = self._other(value.detach())
                    total += size
                    self.old.append(value)
                    setattr(child, name, made)
            for tensor in _own_tensors(self.torch, child):
                total += self.content(tensor)
        return total

    def state(self, entry: Any) -> int:
        """The state of one parameter, changed in place because optimizers hold these dicts."""
        if not isinstance(entry, dict):
            return 0
        total = 0

        def change(tensor: Any) -> Any:
            nonlocal total
            made, size = self._other(tensor)
            total += size
            self.old.append(tensor)
            return made

        for name, value in list(entry.items()):
            entry[name] = _mapped(change, value)
        return total


def _own_tensors(torch: Any, module: Any) -> Iterator[Any]:
    seen: set[int] = set()
    for value in (*module._buffers.values(), *vars(module).values()):
        several = value.values() if isinstance(value, dict) else value
        for part in several if isinstance(value, (dict, list, tuple)) else [value]:
            ours = isinstance(part, torch.Tensor) and not isinstance(part, torch.nn.Parameter)
            if ours and part.grad_fn is None and id(part) not in seen:
                seen.add(id(part))
                yield part
