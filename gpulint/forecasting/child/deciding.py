"""Operators whose answer lies in the data, which a fake tensor has not got.

Small integer and boolean tensors that came from the host are known: their values go along (masks, lengths, labels), and
what is computed from them alone is computed. Elsewhere an assumption is made, written down as a doubt with its line:
all elements are chosen by a mask (a second forecast with fewer shows how much hangs on it), a scalar is 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

import torch
from torch._subclasses.fake_tensor import FakeTensor

aten = torch.ops.aten
FOLLOWED: Final = 1 << 18  # elements of a tensor whose values go along
_FEW: Final = 1 << 12  # of one of floating-point numbers
_INDEX: Final = 8  # bytes
_ALL: Final = {aten.all.default, aten.all.dim, aten.all.dims, aten._is_all_true.default}
_BOTH: Final = {aten.mul.Tensor, aten.bitwise_and.Tensor, aten.logical_and.default}
_MASKS: Final = (torch.bool, torch.uint8)


class Deciding:
    """Answers for `tape`. `share` is the part of its elements that an unknown mask is taken to choose, `number`
    what an unknown whole number is taken to be."""

    def __init__(self, tape: Any, share: float, number: int) -> None:
        self.tape = tape
        self.share = share
        self.number = number
        self.doubts: dict[tuple[str, str, int], int] = {}
        self._writes: dict[int, int] = {}  # to inference tensors, by their storage
        self._special = {
            aten._local_scalar_dense.default: self._scalar,
            aten.equal.default: self._equal,
            aten._use_cudnn_ctc_loss.default: lambda *_: False,
            aten._use_cudnn_ctc_loss.Tensor: lambda *_: False,
            aten._use_miopen_ctc_loss.default: lambda *_: False,
            aten._use_miopen_ctc_loss.Tensor: lambda *_: False,
            aten._pack_padded_sequence.default: self._packed,
            aten.copy_.default: self._copied_to_host,
            aten._to_copy.default: self._moved_to_host,
            aten.nonzero.default: self._nonzero,
            aten.masked_select.default: self._masked_select,
            aten.index.Tensor: self._index,
            aten._unique2.default: self._unique,
            aten.unique_consecutive.default: self._unique,
            aten.unique_dim.default: self._unique_dim,
            aten.repeat_interleave.Tensor: self._repeated,
            aten.bincount.default: self._bincount,
        }

    # -- values that go along --------------------------------------------------------------------------------------

    def remember(self, fake: Any, host: torch.Tensor) -> None:
        """The values of a tensor on the card, if they may decide something and are few."""
        most = _FEW if host.dtype.is_floating_point or host.dtype.is_complex else FOLLOWED
        if host.numel() <= most and not host.requires_grad:
            fake._gpulint_values = (host.detach(), self._version(fake))

    def values(self, fake: Any) -> torch.Tensor | None:
        """What a tensor on the card holds, where it is known and was not written to since."""
        kept = getattr(fake, "_gpulint_values", None)
        return kept[0] if kept is not None and kept[1] == self._version(fake) else None

    def _version(self, fake: Any) -> int:
        """How often it was written to, by any view of it. Inference tensors do not count that themselves."""
        if fake.is_inference():
            return self._writes.get(fake.untyped_storage()._cdata, 0)
        return int(fake._version)

    def follow(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        """After an operator: its results are known if all that they came from is."""
        results = out if isinstance(out, (list, tuple)) else (out,)
        if type(out) is FakeTensor and out.dtype is torch.bool and _expects(func, args):
            out._gpulint_expected = True  # type: ignore[attr-defined]
        if func._schema.is_mutable:
            for one in filter(torch.is_inference, _tensors(args)):
                storage = one.untyped_storage()._cdata
                self._writes[storage] = self._writes.get(storage, 0) + 1
            return
        if not all(map(_is_worth_following, results)):
            return
        tensors = list(_tensors(args))
        if not tensors or torch.Tag.nondeterministic_seeded in func.tags:
            return
        hosts = {id(one): self.values(one) if isinstance(one, FakeTensor) else one for one in tensors}
        if any(host is None for host in hosts.values()):
            return
        kwargs = {**kwargs, "device": torch.device("cpu")} if kwargs.get("device") is not None else kwargs
        try:
            real = func(*_with_hosts(args, hosts), **kwargs)
        except (RuntimeError, TypeError, NotImplementedError, IndexError):
            return
        for one, host in zip(results, real if isinstance(real, (list, tuple)) else (real,), strict=True):
            self.remember(one, host)

    def fresh(self, host: torch.Tensor) -> Any:
        """A tensor on the card with these values."""
        shape, strides = host.shape, host.stride()
        fake = self.tape.made(lambda: torch.empty_strided(shape, strides, dtype=host.dtype, device="cuda"))
        self.remember(fake, host)
        return fake

    # -- decisions -----------------------------------------------------------------------------------------------------

    def decide(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The answer of such an operator; NotImplemented for all others."""
        special: Any = self._special.get(func)
        if special is None and func._schema.name == "torchvision::nms":
            special = self._kept_boxes
        if special is None or not any(isinstance(one, FakeTensor) for one in _tensors(args)):
            return NotImplemented
        return special(func, args, kwargs)

    def doubt(self, code: str) -> None:
        site = self.tape.frames.here(3)
        key = (code, site.file, site.line)
        self.doubts[key] = self.doubts.get(key, 0) + 1

    def _scalar(self, func: Any, args: Any, kwargs: Any) -> Any:
        fake = args[0]
        known = self.values(fake)
        if known is not None:
            return known.item()
        if fake.dtype is torch.bool:
            self.doubt("boolean")
            return _is_expected(fake)
        if not fake.dtype.is_floating_point:
            self.doubt("number")
            return self.number
        return 1.0

    def _equal(self, func: Any, args: Any, kwargs: Any) -> bool:
        """Two tensors are; whether a condition is true depends on the condition."""
        fake = args[0]
        return _is_expected(fake) if fake.dtype is torch.bool and not fake.dim() else True

    def _packed(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The lengths are on the host: so are the sizes of the steps' batches. The steps' parts are cut out, then joined."""
        data, lengths = args[:2]
        longest = int(lengths.max())
        batches = (lengths[None, :] > torch.arange(longest, device="cpu")[:, None]).sum(1)
        shape = (int(lengths.sum()), *data.shape[2:])
        parts = self.tape.made(lambda: data.new_empty(shape))
        whole = self.tape.made(lambda: data.new_empty(shape))
        del parts
        return whole, batches

    def _kept_boxes(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Which boxes overlap too much is not known."""
        self.doubt("mask")
        count = args[0].shape[0]
        overlaps = 8 * count * -(-count // 64)
        self.tape.temporary(2 * args[0].numel() * args[0].element_size() + overlaps)
        return self._empty(args[0], (math.ceil(self.share * count),), torch.long)

    def _copied_to_host(self, func: Any, args: Any, kwargs: Any) -> Any:
        target, source = args[:2]
        if isinstance(target, FakeTensor) and target.fake_device.type != "cpu":
            return NotImplemented
        known = self.values(source) if isinstance(source, FakeTensor) else source
        if known is not None:
            target.copy_(known)
        return target

    def _moved_to_host(self, func: Any, args: Any, kwargs: Any) -> Any:
        device = kwargs.get("device")
        if device is None or device.type != "cpu" or not isinstance(args[0], FakeTensor):
            return NotImplemented
        known, dtype = self.values(args[0]), kwargs.get("dtype") or args[0].dtype
        if known is None:
            return torch.zeros(args[0].shape, dtype=dtype, device="cpu")
        return known.to(dtype, copy=True)

    def _chosen(self, mask: Any) -> torch.Tensor | int:
        """The indices that a mask chooses, or how many are assumed."""
        known = self.values(mask) if isinstance(mask, FakeTensor) else mask
        if known is not None:
            chosen: torch.Tensor = known.nonzero()
            return chosen
        self.doubt("mask")
        return math.ceil(self.share * mask.numel())

    def _nonzero(self, func: Any, args: Any, kwargs: Any) -> Any:
        chosen = self._chosen(args[0])
        if isinstance(chosen, torch.Tensor):
            return self.fresh(chosen)
        return self._empty(args[0], (chosen, args[0].dim()), torch.long)

    def _masked_select(self, func: Any, args: Any, kwargs: Any) -> Any:
        values, mask = args[:2]
        chosen = self._chosen(mask)
        count = chosen.shape[0] if isinstance(chosen, torch.Tensor) else chosen
        return self._empty(values, (count * values.numel() // max(1, mask.numel()),), values.dtype)

    def _index(self, func: Any, args: Any, kwargs: Any) -> Any:
        values, indices = args[:2]
        if not any(one is not None and one.dtype in _MASKS for one in indices):
            return NotImplemented
        expanded: list[Any] = []
        for one in indices:
            if one is None or one.dtype not in _MASKS:
                expanded.append(one)
                continue
            chosen = self._chosen(one)
            if isinstance(chosen, torch.Tensor):
                expanded += [self.fresh(column.contiguous()) for column in chosen.unbind(1)]
            else:
                rows, columns = chosen, one.dim()
                places = self.tape.made(lambda r=rows, c=columns: values.new_empty((r, c), dtype=torch.long))
                expanded += places.unbind(1)
        return self.tape.execute(func, (values, expanded), kwargs)

    def _unique(self, func: Any, args: Any, kwargs: Any) -> Any:
        known = self.values(args[0])
        if known is not None:
            return tuple(self.fresh(one) for one in func(known, *args[1:], **kwargs))
        self.doubt("unique")
        # Sorted before, with the places, each through a second buffer.
        self.tape.temporary(args[0].numel() * (2 * args[0].element_size() + 3 * _INDEX))
        count = max(1, math.ceil(self.share * args[0].numel()))
        return (
            self._empty(args[0], (count,), args[0].dtype),
            self._empty(args[0], args[0].shape, torch.long),
            self._empty(args[0], (count,), torch.long),
        )

    def _unique_dim(self, func: Any, args: Any, kwargs: Any) -> Any:
        self.doubt("unique")
        shape, dim = list(args[0].shape), args[1]
        count = max(1, math.ceil(self.share * shape[dim]))
        inverse = self._empty(args[0], (shape[dim],), torch.long)
        shape[dim] = count
        counts = self._empty(args[0], (count,), torch.long)
        return self._empty(args[0], shape, args[0].dtype), inverse, counts

    def _repeated(self, func: Any, args: Any, kwargs: Any) -> Any:
        size = kwargs.get("output_size")
        known = self.values(args[0])
        if size is None and known is not None:
            size = int(known.sum())
        if size is None:
            self.doubt("repeats")
            size = args[0].numel()
        return self._empty(args[0], (size,), torch.long)

    def _bincount(self, func: Any, args: Any, kwargs: Any) -> Any:
        known = self.values(args[0])
        length = kwargs.get("minlength", args[2] if len(args) > 2 else 0)
        if known is not None:
            length = max(length, int(known.max()) + 1 if known.numel() else 0)
        else:
            self.doubt("bincount")
        return self._empty(args[0], (max(1, length),), torch.long)

    def _empty(self, like: Any, shape: Iterable[int], dtype: torch.dtype) -> Any:
        return like.new_empty(tuple(shape), dtype=dtype) if isinstance(like, FakeTensor) else None


def _is_expected(fake: Any) -> bool:
    """That all of something is as it should be is true, that any is as it should not be is false."""
    return getattr(fake, "_gpulint_expected", False)


def _expects(func: Any, args: Any) -> bool:
    """Whether true is what a condition gives where nothing is wrong: that all are valid, that numbers are finite (which is asked as
    being equal to itself, and not infinite)."""
    if func in _ALL:
        return True
    if func is aten.eq.Tensor:
        return args[0] is args[1]
    if func is aten.ne.Scalar:
        return bool(args[1] == math.inf)
    return func in _BOTH and all(map(_is_expected, args[:2]))


def _is_worth_following(out: Any) -> bool:
    if type(out) is not FakeTensor:
        return False
    return out.numel() <= (_FEW if out.dtype.is_floating_point else FOLLOWED)


def _tensors(values: Any) -> Iterable[Any]:
    for one in values:
        if isinstance(one, torch.Tensor):
            yield one
        elif isinstance(one, (list, tuple)):
            yield from _tensors(one)


def _with_hosts(values: Any, hosts: dict[int, Any]) -> Any:
    return type(values)(
        hosts[id(one)] if isinstance(one, torch.Tensor)
        else _with_hosts(one, hosts) if isinstance(one, (list, tuple))
        else torch.device("cpu") if isinstance(one, torch.device)
        else one
        for one in values
    )  # fmt: skip
