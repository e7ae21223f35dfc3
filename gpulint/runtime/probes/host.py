"""The probe for machines without a GPU: every live tensor storage, as the caching allocator would count it.

A dispatch mode sees each operator's outputs, also in backward and in optimizers. It keeps a weak reference to
every new storage; the reference dies with the storage, even when only the C++ autograd graph held it. What
would be on the GPU is told apart from what would stay on the host, and the two transfers are made real:
`.to(device)` of a host tensor and `.cpu()` of a device tensor copy, as they do on a GPU, where a CPU build
would hand back the same tensor.
"""

from __future__ import annotations

import contextlib
import dis
import linecache
import os
import sys
import threading
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from contextlib import ExitStack
from types import FrameType
from typing import Any

import torch
from torch.utils import _device
from torch.utils import _python_dispatch as modes
from torch.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass

from gpulint.runtime.probes import hooks
from gpulint.runtime.probes.base import Block, Probe, Since, Tops
from gpulint.runtime.probes.crests import Crests, by_site
from gpulint.runtime.probes.dispatch import called, parts_of, tensors_in
from gpulint.runtime.probes.frames import Frames
from gpulint.runtime.probes.plain import live_tensors
from gpulint.runtime.record.drift import rounded
from gpulint.runtime.record.peaks import Stretch
from gpulint.runtime.record.result import Figures, Place

# Where a storage would live if the script ran on a GPU. PRESUMED: made by a factory call that names no
# device; it is on the host in a script that moves tensors, and stands for the device in one that has no
# notion of devices at all.
DEVICE, PRESUMED, HOST = 0, 1, 2

_LIFT = torch.ops.aten.lift_fresh.default
_RESIZE = torch.ops.aten.resize_.default
_SET = torch.ops.aten.set_.source_Storage_storage_offset


class _Ref(weakref.ref):  # type: ignore[type-arg]
    __slots__ = ("cdata", "code", "epoch", "size")
    cdata: int
    code: int  # site * 4 + place
    epoch: int  # the mark after which it was born
    size: int


class HostProbe(TorchDispatchMode, Probe):  # type: ignore[no-untyped-call]
    """See the module's docstring. One instance per process, entered on the thread that trains.

    Every birth, every death and every mark is seen: there is nothing to watch, to settle or to attribute. What is born while a
    DataLoader makes a batch is on the host. `everything` counts each tensor as the device's, wherever it would live, and changes nothing that the program does:
    for test suites, which do not say what is on a device."""

    name = "host-storages"

    def __init__(self, frames: Frames, everything: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.transfers = 1 if everything else 0
        self._frames = frames
        self._everything = everything
        self._forced: int | None = DEVICE if everything else None
        self._table: dict[int, _Ref] = {}
        self._fresh: dict[Any, bool] = {}
        self._totals: defaultdict[int, int] = defaultdict(int)  # code -> live bytes
        self._series: list[dict[int, int]] = []  # the same at each mark
        self._site_places: dict[int, int] = {}
        self._live = [0, 0, 0]
        self._peaks = [0, 0]  # device alone, device with presumed
        self._tops = Tops()
        self._loading: Counter[int] = Counter()  # batches that are made now, by thread
        self._compiles = False  # whether the script asked for torch.compile
        self.crests: Crests | None = None  # where the lines of peaks are asked for
        self._undo = ExitStack()

    def start(self) -> None:
        """Enter the mode and make transfers real."""
        self.__enter__()  # type: ignore[no-untyped-call]
        self._follow_clones()
        if self._everything:
            return
        undo = hooks.together(
            hooks.wrap(torch.Tensor, "to", lambda original: _moving(self, original, _target)),
            hooks.wrap(torch.Tensor, "cpu", lambda original: _moving(self, original)),
            hooks.wrap(torch, "load", lambda original: _reading(self, original)),
            hooks.around(torch, "compile", self._compile),
        )
        self._undo.callback(undo)

    def _compile(self, *_: Any, **__: Any) -> None:
        self._compiles = True

    def _follow_clones(self) -> None:
        """`copy.deepcopy` of a tensor clones its storage past the dispatcher: the copy is where the original is."""

        def cloned(copy: Any, storage: Any) -> None:
            known = self._table.get(storage._cdata) if self.active else None
            if known is not None and copy.nbytes() and copy._cdata not in self._table:
                self._born(copy, self._frames.index(sys._getframe(1)), known.code % 4, known.size)

        self._undo.callback(hooks.around(torch.storage._StorageBase, "clone", after=cloned))

    def skip_to(self, mark: int) -> None:
        while len(self._series) < mark:
            self.mark(False)

    def capacity(self) -> int | None:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return None

    def follow_peaks(self) -> None:
        self.crests = Crests(lambda code: code % 4 in self._device_places)

    def peaks(self) -> dict[Stretch, tuple[int, dict[int, int]]]:
        if self.crests is None:
            return {}
        self.crests.fold()
        return {
            stretch: (crest.allocated, by_site((size, code // 4) for code, size in crest.parts.items()))
            for stretch, crest in self.crests.best.items()
        }

    def alive(self) -> dict[Hashable, Block]:
        return {cdata: block for cdata, block in self.born(-1).items() if block.place == "device"}

    def adopt(self, parameters_on_device: bool = False) -> None:
        # What is made from them would otherwise look like the host's.
        for one in live_tensors():
            with contextlib.suppress(NotImplementedError, RuntimeError):
                storage = one.untyped_storage()
                size = rounded(storage.nbytes())
                if size and storage._cdata not in self._table and storage.device.type == "cpu":
                    moved = self._everything or (parameters_on_device and isinstance(one, torch.nn.Parameter))
                    self._born(storage, 0, DEVICE if moved else PRESUMED, size)

    def stop(self) -> None:
        """Stop watching. The mode stays on the stack, where others may have been entered after it, and only
        calls through."""
        self.active = False
        self._undo.close()

    def join(self) -> None:
        # Where it is entered in inference mode, it is not asked once that has ended: so as early as can be
        if self.active and all(mode is not self for mode in modes._get_current_dispatch_mode_stack()):
            modes._push_mode(self)

    def load(self, change: int) -> None:
        self._loading[threading.get_ident()] += change

    def leave(self) -> None:
        self.stop()
        self.__exit__(None, None, None)  # type: ignore[no-untyped-call]

    # -- births and deaths
    # ---------------------------------------------------------------------------------------------

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = called(func, args, kwargs)
        if self.active:
            fresh = self._fresh.get(func)
            if fresh is None:
                fresh = self._fresh[func] = _makes_storage(func)
            if fresh:
                for item in (out,) if isinstance(out, torch.Tensor) else tensors_in(out):
                    self._see(item, args)
            elif func is _RESIZE:
                self._resized(out)
            elif func is _SET and self._forced is not None:
                self._see(out, args)  # memory that a file was read into
        return out

    def _see(self, tensor: torch.Tensor, args: Any) -> None:
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):  # sparse and other tensors made of tensors
            for part in parts_of(tensor):
                self._see(part, args)
            return
        cdata = storage._cdata
        if cdata in self._table:
            return
        if type(tensor) is not torch.Tensor:
            if is_traceable_wrapper_subclass(tensor):
                for part in parts_of(tensor):
                    self._see(part, args)
                return
            if type(tensor).__name__ in ("FakeTensor", "FunctionalTensor"):
                return
        size = rounded(storage.nbytes())
        if not size or storage.device.type == "meta":
            return
        site = self._frames.index(sys._getframe(2))
        place = self._forced if self._forced is not None else self._place(args, cdata, site)
        self._born(storage, site, place, size)

    def _born(self, storage: Any, site: int, place: int, size: int) -> None:
        ref = _Ref(storage, self._died)
        ref.cdata, ref.code = storage._cdata, site * 4 + place
        ref.epoch, ref.size = len(self._series) - 1, size
        self._table[ref.cdata] = ref
        self._change(ref.code, size)

    def _change(self, code: int, size: int) -> None:
        """Bytes have come, or gone where `size` is negative."""
        self._totals[code] += size  # at once, for whatever thread
        live, place = self._live, code % 4
        live[place] += size
        if size > 0 and place != HOST:
            peaks = self._peaks
            both = live[0] + live[1]
            if both > peaks[1]:
                peaks[1] = both
            if live[0] > peaks[0]:
                peaks[0] = live[0]
        if self.crests is not None:
            self.crests.add(code, size)

    def _died(self, ref: _Ref) -> None:
        if self._table.get(ref.cdata) is ref:
            del self._table[ref.cdata]
        self._change(ref.code, -ref.size)

    def _resized(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        ref = self._table.get(storage._cdata)
        if ref is not None:
            grown = rounded(storage.nbytes()) - ref.size
            ref.size += grown
            self._change(ref.code, grown)

    # -- device or host
    # ------------------------------------------------------------------------------------------------

    def _place(self, args: Any, cdata: int, site: int) -> int:
        if self._loading[threading.get_ident()]:
            return HOST
        place = -1
        for arg in args:  # by hand: for each storage that is born
            for tensor in arg if isinstance(arg, (list, tuple)) else (arg,):
                found = self.place_of(tensor, cdata) if isinstance(tensor, torch.Tensor) else None
                if found == DEVICE:
                    return DEVICE
                if found is not None:
                    place = found if place < 0 else min(place, found)
        if place >= 0:
            return place
        known = self._site_places.get(site)
        if known is None:
            known = self._site_places[site] = self._factory_place(site)
        return known

    def _factory_place(self, site: int) -> int:
        """A factory call's place, from its source line: it names a device, or it makes a host tensor."""
        where = self._frames.sites[site]
        text = linecache.getline(where.file, where.line)
        following = where.line + 1
        while text.count("(") > text.count(")") and following < where.line + 12:
            more = linecache.getline(where.file, following)
            if not more:
                break
            text, following = text + more, following + 1
        if "device" in text or "cuda" in text or _device.CURRENT_DEVICE is not None:
            self.transfers += 1
            return DEVICE
        return PRESUMED

    def place_of(self, tensor: torch.Tensor, fresh: int = 0) -> int | None:
        """Where the tensor's storage would live. Storages never seen came from files, numpy or worker
        processes: HOST. None for the storage with address `fresh`, which is being judged."""
        try:
            cdata = tensor.untyped_storage()._cdata
        except (NotImplementedError, RuntimeError):
            return DEVICE
        if cdata == fresh:
            return None
        ref = self._table.get(cdata)
        return HOST if ref is None else ref.code % 4

    def copy_to(self, tensor: torch.Tensor, place: int) -> torch.Tensor:
        """A copy, differentiable like any clone, that counts as living in `place`."""
        previous, self._forced = self._forced, place
        try:
            return tensor.clone()
        finally:
            self._forced = previous

    @property
    def _device_places(self) -> tuple[int, ...]:
        return (DEVICE,) if self.transfers else (DEVICE, PRESUMED)

    def _public(self, place: int) -> Place:
        return "device" if place in self._device_places else "host"

    # -- readings
    # ------------------------------------------------------------------------------------------------------

    def mark(self, wanted: bool) -> Figures:
        if self.crests is not None:
            self.crests.fold()
        allocated = self.allocated()
        figures = Figures(allocated=allocated, peak=self.peak(), host_tensors=sum(self._live) - allocated)
        # A copy: storages of other threads come and go meanwhile
        self._series.append({code: size for code, size in self._totals.copy().items() if size})
        self.begin_peak("mark")
        return figures

    def born(self, since: int) -> dict[Hashable, Block]:
        young = ((key, ref) for key, ref in list(self._table.items()) if ref.epoch >= since)
        return {
            key: Block(ref.code // 4, self._public(ref.code % 4), ref.epoch, ref.size) for key, ref in young
        }

    def series(self, site: int, place: Place, marks: list[int]) -> list[int] | None:
        codes = [site * 4 + code for code in (DEVICE, PRESUMED, HOST) if self._public(code) == place]
        return [sum(self._series[mark].get(code, 0) for code in codes) for mark in marks]

    def key(self, tensor: Any) -> Hashable | None:
        try:
            cdata: int = torch.Tensor.untyped_storage(tensor)._cdata
        except (NotImplementedError, RuntimeError, ValueError):
            return None
        return cdata

    def allocated(self) -> int:
        return self._live[0] if self.transfers else self._live[0] + self._live[1]

    def peak(self, since: Since = "mark") -> int:
        which = 0 if self.transfers else 1
        return self._tops.of(since, which, self._peaks[which])

    def begin_peak(self, since: Since) -> int:
        for which, reached in enumerate(self._peaks):
            self._tops.keep(which, reached)
        self._tops.begin(since)
        self._peaks = [self._live[0], self._live[0] + self._live[1]]
        return self.allocated()

    def raw_bytes(self) -> int:
        return sum(self._live)

    def notes(self) -> list[str]:
        sizes = "sizes are those of live tensor storages, rounded as the CUDA caching allocator rounds"
        said = [f"Ran on the CPU: {sizes}; reserved memory was not measured."]
        if self._compiles:
            said.append("torch.compile is bypassed under this probe: compiled code was verified as eager.")
        return said


def _makes_storage(func: Any) -> bool:
    """Whether an operator can return memory of its own; views and in-place operators cannot."""
    schema = getattr(func, "_schema", None)  # an operator of higher order has none
    if func is _LIFT or schema is None:
        return True
    return any(item.alias_info is None and "Tensor" in str(item.type) for item in schema.returns)


# -- transfers
# ---------------------------------------------------------------------------------------------------------


def _moving(probe: HostProbe, original: Any, target_of: Callable[[Any, Any], Any] | None = None) -> Any:
    """`Tensor.to` or `Tensor.cpu`, with the copy that a GPU run would make. `target_of` says where to, by the arguments."""

    def move(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        out = original(self, *args, **kwargs)
        if not probe.active or (type(out) is not torch.Tensor and not isinstance(out, torch.nn.Parameter)):
            return out
        place = HOST
        if target_of is not None:
            target = target_of(args, kwargs)
            if target is None:
                return out
            if not isinstance(target, (str, torch.device)) or not _is_literal_cpu(sys._getframe(1), "to"):
                place, probe.transfers = DEVICE, probe.transfers + 1
        if out.device.type != "cpu" or (out.is_leaf and out.requires_grad and torch.is_grad_enabled()):
            return out
        here = probe.place_of(out)
        if here == place or (place == HOST and here == PRESUMED and probe.transfers):
            return out
        return probe.copy_to(out, place)

    return move


def _target(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The device, or the tensor that gives it, among the arguments of `Tensor.to`; None if only a dtype is
    given."""
    target = kwargs.get("device", kwargs.get("other"))
    if target is None and args and isinstance(args[0], (str, torch.device, torch.Tensor)):
        target = args[0]
    return target


def _reading(probe: HostProbe, original: Any) -> Any:
    """`torch.load`, whose tensors would be on the device where `map_location` names one."""

    def load(*args: Any, **kwargs: Any) -> Any:
        target = kwargs.get("map_location", args[1] if len(args) > 1 else None)
        moved = isinstance(target, (str, torch.device)) and not _is_literal_cpu(sys._getframe(1), "load")
        if not probe.active or not moved:
            return original(*args, **kwargs)
        probe.transfers += 1
        previous, probe._forced = probe._forced, DEVICE
        try:
            return original(*args, **kwargs)
        finally:
            probe._forced = previous

    return load


_literals: dict[tuple[int, int], tuple[Any, bool]] = {}


def _is_literal_cpu(frame: FrameType, called: str) -> bool:
    """Whether the call of `called` under way in `frame` writes "cpu" out, as `.to("cpu")` does and `.to(device)`
    does not."""
    code, position = frame.f_code, frame.f_lasti
    known = _literals.get((id(code), position))
    if known is None:
        before = [i for i in dis.get_instructions(code) if i.offset <= position][-12:]
        start = max((n for n, i in enumerate(before) if i.argval == called), default=0)
        found = any(i.opname.startswith("LOAD_CONST") and i.argval == "cpu" for i in before[start:])
        known = _literals[(id(code), position)] = (code, found)
    return known[1]
