"""The tape: every allocation and free that a program would make on the card, in order.

A dispatch mode sees every operator, in the forward, the backward and the optimizer alike. Tensors on the card are fake:
they have a storage of the right size with nothing behind it. A storage that was not seen before is an allocation, and
the end of the storage's life is its free.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from gpulint.allocator import Allocator
from gpulint.forecasting.cards import Card
from gpulint.forecasting.child.deciding import Deciding
from gpulint.forecasting.recording import Phase
from gpulint.runtime.probes.frames import Frames

_aten: Final = torch.ops.aten
_CAST: Final = _aten._to_copy.default
_ABOUT_LOGITS: Final = {_CAST, _aten._log_softmax.default, _aten._log_softmax_backward_data.default}
_MOST_ON_HOST: Final = 1 << 27  # elements
_graph_task: Final = torch._C._current_graph_task_id
_node: Final = torch._C._current_autograd_node
_sequence: Final = torch._C._autograd._get_sequence_nr


class Tape(TorchDispatchMode):
    """Records. `hooks` run operators instead of torch, for what a GPU takes besides their results."""

    def __init__(
        self, card: Card, frames: Frames, hooks: dict[Any, Any], deciding: tuple[float, int]
    ) -> None:
        super().__init__()
        self.card = card
        self.frames = frames
        self.hooks = hooks
        self.fakes = FakeTensorMode(allow_non_fake_inputs=True)
        self.deciding = Deciding(self, *deciding)
        self.events: list[Any] = []
        self.operators: dict[str, int] = {"": 0}
        self.model = Allocator()
        self.phase = Phase.FORWARD  # or OPTIMIZER, set by who sees steps
        self.paused = False
        self.operator = ""
        self.module = (
            ""  # the innermost that is running, by its name in the network; set by who sees them called
        )
        self._places: dict[tuple[int, str], int] = {(0, ""): 0}  # site and module
        self._addresses: dict[int, int] = {}
        self._live: dict[int, tuple[weakref.ref[Any], int]] = {}  # storage -> its number
        self._count = 0
        self._said: set[str] = set()
        self._forward_places: dict[int, int] = {}  # autograd's sequence number -> place
        self._last_sequence = -1
        self.step_peak = 0  # allocated at most since the step began
        self.most_reserved = 0
        self.logits: set[int] = set()
        self._copied: dict[int, int] = {}  # allocation -> the one that it is a copy of in another type

    # -- what hooks may say ------------------------------------------------------------------------------------

    def temporary(self, nbytes: int) -> None:
        """A kernel takes memory and gives it back."""
        if nbytes > 0:
            self.release(self.hold(nbytes))

    def hold(self, nbytes: int) -> int:
        """A kernel takes memory, until `release` of what is returned."""
        return self._allocate(max(1, nbytes), Phase.KERNEL)

    def release(self, number: int) -> None:
        self._free(number)

    @contextlib.contextmanager
    def holding(self, *sizes: int) -> Iterator[None]:
        """A kernel has taken so many bytes, in pieces, for as long as the block runs."""
        held = [self.hold(nbytes) for nbytes in sizes]
        yield
        for number in held:
            self.release(number)

    def permanent(self, nbytes: int, what: str) -> None:
        """A library takes memory for as long as the process lives; said again, nothing happens."""
        if what not in self._said and nbytes > 0:
            self._said.add(what)
            self.operator = what
            self._allocate(nbytes, Phase.LIBRARY)

    def made(self, make: Callable[[], Any], phase: Phase | None = None) -> Any:
        """What `make` gives under the fake mode, seen as one allocation whatever way it came about."""
        self.paused = True
        try:
            with self.fakes:
                out = make()
        finally:
            self.paused = False
        self.see(out, phase)
        return out

    def within(self, out: Any, nbytes: int) -> Any:
        """The same result in a storage of so many bytes, where that is more."""
        if out.numel() * out.element_size() >= nbytes:
            self.see(out)
            return out
        shape, strides, dtype = out.shape, out.stride(), out.dtype
        count = -(-nbytes // out.element_size())
        return self.made(lambda: torch.empty(count, dtype=dtype, device="cuda").as_strided(shape, strides))

    def execute(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run an operator: on fakes where the card is meant."""
        device = kwargs.get("device")
        fake = args and isinstance(args[0], FakeTensor)
        if device is not None and device.type == "cuda" and not fake:
            with self.fakes:
                return func(*args, **kwargs)
        try:
            return func(*args, **kwargs)
        except NotImplementedError:
            return self._on_host(func, args, kwargs)

    def _on_host(self, func: Any, args: Any, kwargs: Any) -> Any:
        """An operator that has no fake implementation, run on the host with zeros, for the shapes of its results."""
        given, spec = tree_flatten((args, kwargs))
        tensors = [one for one in given if isinstance(one, torch.Tensor)]
        if sum(_elements(one) for one in tensors) > _MOST_ON_HOST:
            return func(*args, **kwargs)
        known: dict[int, Any] = {}

        def real(one: Any) -> Any:
            if not isinstance(one, FakeTensor):
                return torch.device("cpu") if isinstance(one, torch.device) else one
            values = self.deciding.values(one)
            host = torch.zeros(one.shape, dtype=one.dtype, device="cpu") if values is None else values
            known[id(host)] = one
            return host

        def fake(one: Any) -> Any:
            if not isinstance(one, torch.Tensor):
                return one
            if id(one) in known:
                return known[id(one)]
            if one.layout is not torch.strided:
                raise NotImplementedError(f"{func} on a sparse tensor has no fake implementation")
            with self.fakes:
                return torch.empty_strided(one.shape, one.stride(), dtype=one.dtype, device="cuda")

        hosts = [real(one) for one in given]
        host_args, host_kwargs = tree_unflatten(hosts, spec)
        return tree_map(fake, func(*host_args, **host_kwargs))

    # -- allocations and frees -----------------------------------------------------------------------------------

    def _allocate(self, nbytes: int, phase: Phase) -> int:
        self._count = number = self._count + 1
        operator = self.operators.setdefault(self.operator, len(self.operators))
        self.events.append((number, nbytes, self._place(), operator, int(phase)))
        self._addresses[number] = self.model.malloc(nbytes)
        self.step_peak = max(self.step_peak, self.model.allocated)
        self.most_reserved = max(self.most_reserved, self.model.reserved)
        return number

    def _free(self, number: int) -> None:
        self.events.append(number)
        self.model.free(self._addresses.pop(number))

    def empty_cache(self) -> None:
        self.events.append(0)
        self.model.empty_cache()

    def see(self, out: Any, phase: Phase | None = None) -> None:
        """Results of an operator: what is new among their storages was allocated."""
        if isinstance(out, FakeTensor):
            if out.fake_device.type != "cuda":
                return
            for part in _parts(out):
                self._see_storage(part.untyped_storage(), phase)
        elif isinstance(out, (list, tuple)):
            for one in out:
                self.see(one, phase)

    def _see_storage(self, storage: Any, phase: Phase | None) -> None:
        key = storage._cdata
        if key in self._live:
            return
        nbytes = storage.nbytes()
        if not nbytes:
            return
        number = self._allocate(nbytes, self._phase() if phase is None else phase)

        def died(reference: Any) -> None:
            if self._live.get(key, (None, 0))[0] is reference:
                del self._live[key]
            self._free(number)

        self._live[key] = (weakref.ref(storage, died), number)

    def number_of(self, tensor: Any) -> int:
        """The number of the allocation behind a tensor; 0 where it is not on the card."""
        if not isinstance(tensor, FakeTensor) or tensor.layout is not torch.strided:
            return 0
        return self._live.get(tensor.untyped_storage()._cdata, (None, 0))[1]

    def _phase(self) -> Phase:
        if self.phase is Phase.OPTIMIZER:
            return Phase.OPTIMIZER
        if torch.is_grad_enabled():
            return Phase.FORWARD
        return Phase.BACKWARD if _graph_task() != -1 else Phase.WITHOUT_GRAD

    # -- lines -----------------------------------------------------------------------------------------------------

    @property
    def sites(self) -> list[tuple[str, int, str, str]]:
        """File, line, function and module of every place."""
        known = self.frames.sites
        return [(known[at].file, known[at].line, known[at].function, module) for at, module in self._places]

    def _place_of(self, frame: FrameType) -> int:
        return self._places.setdefault((self.frames.index(frame), self.module), len(self._places))

    def _place(self) -> int:
        """The line and the module that are running; in the backward, where frames are the engine's, the line of the forward that made
        its node."""
        if _graph_task() != -1:
            node = _node()
            known = 0 if node is None else self._forward_places.get(node._sequence_nr(), 0)
            if known:
                return known
        return self._place_of(sys._getframe(2))

    def _note_node(self) -> None:
        number = _sequence()
        if number != self._last_sequence:
            self._last_sequence = number
            if _graph_task() == -1:
                self._forward_places[number - 1] = self._place_of(sys._getframe(2))

    # -- operators -------------------------------------------------------------------------------------------------

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.paused:
            return func(*args, **kwargs)
        if torch.is_inference_mode_enabled() and _is_composite(func):
            with self:  # autograd, which takes it apart elsewhere, is passed over in this mode
                return func.decompose(*args, **kwargs)
        decided = self.deciding.decide(func, args, kwargs)
        if decided is not NotImplemented:
            self.operator = str(func)
            self.see(decided)
            return decided
        self.operator = str(func)
        self._note_node()
        hook = self.hooks.get(func)
        out = self.execute(func, args, kwargs) if hook is None else hook(self, func, args, kwargs)
        self.see(out)
        self.deciding.follow(func, args, kwargs, out)
        if func in _ABOUT_LOGITS:
            self._note_logits(func, args, out)
        return out

    def _note_logits(self, func: Any, args: Any, out: Any) -> None:
        """What goes into the softmax of a loss and comes out of it, and what it was before it was cast."""
        made = self.number_of(out)
        if func is _CAST:
            self._copied[made] = self.number_of(args[0])
            return
        number = self.number_of(args[0])
        while number and number not in self.logits:
            self.logits.add(number)
            number = self._copied.get(number, 0)
        self.logits.add(made)


@functools.cache
def _is_composite(func: Any) -> bool:
    """Whether an operator is nothing but calls of others."""
    key = "CompositeImplicitAutograd"
    return func.namespace == "aten" and bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), key))


def _elements(tensor: Any) -> int:
    return int(tensor.numel() if tensor.layout is torch.strided else sum(tensor.shape))


def _parts(tensor: Any) -> tuple[Any, ...]:
    """The tensors that a sparse one is made of."""
    if tensor.layout is torch.strided:
        return (tensor,)
    if tensor.layout is torch.sparse_coo:
        return tensor._indices(), tensor._values()
    if tensor.layout is torch.sparse_csr:
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    return ()
