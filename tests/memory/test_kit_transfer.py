"""to_cpu, save_checkpoint and release with real tensors; "meta" plays the device where one is needed."""

import collections
import dataclasses
import errno
import gc
import os
import weakref
from typing import Any, NamedTuple

import pytest
import torch

from gpulint import memory

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass(frozen=True)
class Output:
    loss: torch.Tensor
    name: str
    extra: dict[str, Any] = dataclasses.field(default_factory=dict)


class Token:
    """Lives as long as the graph it is saved in."""


class Remember(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, token: Token) -> torch.Tensor:
        ctx.token = token
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        return grad * 2, None


def graph_with_token() -> tuple[torch.Tensor, weakref.ref[Token]]:
    token = Token()
    return Remember.apply(torch.ones(2, requires_grad=True), token), weakref.ref(token)


class TestToCpu:
    def test_detaches_through_every_container(self) -> None:
        x = torch.ones(3, requires_grad=True) * 2
        given = {
            "list": [x, 1],
            "tuple": (x, "a"),
            "pair": Pair(x, None),
            "output": Output(x, "n", {"deep": [x]}),
            "ordered": collections.OrderedDict(a=x),
            "default": collections.defaultdict(list, a=[x]),
            "deque": collections.deque([x], maxlen=3),
            "set": {1, 2},
            "number": 3.5,
        }
        made = memory.to_cpu(given)
        found = [
            made["list"][0],
            made["tuple"][0],
            made["pair"].left,
            made["output"].loss,
            made["output"].extra["deep"][0],
            made["ordered"]["a"],
            made["default"]["a"][0],
            made["deque"][0],
        ]
        assert all(t.grad_fn is None and not t.requires_grad for t in found)
        assert all(torch.equal(t, x) for t in found)
        assert type(made["pair"]) is Pair
        assert type(made["output"]) is Output
        assert type(made["ordered"]) is collections.OrderedDict
        assert made["default"]["missing"] == []
        assert made["deque"].maxlen == 3
        assert given["list"][0] is x
        assert given["output"].loss is x

    def test_cycles(self) -> None:
        given: list[Any] = [torch.ones(1)]
        given.append(given)
        made = memory.to_cpu(given)
        assert made[1] is made
        assert made is not given

    def test_frees_the_graph(self) -> None:
        output, token = graph_with_token()
        kept = memory.to_cpu([output])
        assert token() is not None
        del output
        gc.collect()
        assert token() is None
        assert kept[0].tolist() == [2.0, 2.0]

    def test_sparse_and_plain_objects(self) -> None:
        sparse = torch.eye(3).to_sparse()
        marker = object()
        made = memory.to_cpu({"s": sparse, "o": marker})
        assert made["s"].is_sparse
        assert made["o"] is marker

    @pytest.mark.gpu
    @needs_gpu
    def test_shared_storage_stays_shared_and_views_come_alone(self) -> None:
        weight = torch.arange(12.0, device="cuda")
        made = memory.to_cpu({"a": weight, "b": weight.view(3, 4), "again": weight})
        assert made["a"].data_ptr() == made["b"].data_ptr() == made["again"].data_ptr()
        alone = memory.to_cpu(torch.zeros(1000, 1000, device="cuda")[0])
        assert alone.untyped_storage().nbytes() == 4000


class TestSaveCheckpoint:
    def test_states_of_modules_and_optimizers(self, tmp_path) -> None:
        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.AdamW(model.parameters())
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        saved = memory.save_checkpoint(
            {"model": model, "optimizers": [optimizer], "epoch": 3}, tmp_path / "c.pt"
        )
        assert saved.bytes == (tmp_path / "c.pt").stat().st_size
        content = torch.load(saved.path)  # weights_only: no pickled optimizer is in it
        assert content["epoch"] == 3
        assert torch.equal(content["model"]["weight"], model.weight)
        torch.optim.AdamW(model.parameters()).load_state_dict(content["optimizers"][0])

    def test_tied_weights_are_written_once(self, tmp_path) -> None:
        class Tied(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.embed = torch.nn.Embedding(1000, 100)
                self.head = torch.nn.Linear(100, 1000, bias=False)
                self.head.weight = self.embed.weight

        assert memory.save_checkpoint(Tied(), tmp_path / "t.pt").bytes < 450_000  # 400,000 are the weights

    def test_a_failed_save_leaves_the_old_file_and_no_other(self, tmp_path) -> None:
        path = tmp_path / "c.pt"
        memory.save_checkpoint({"x": torch.ones(2)}, path)
        before = path.read_bytes()
        with pytest.raises(Exception, match=r"pickle|local object|lambda"):
            memory.save_checkpoint({"x": lambda: 1}, path)
        assert path.read_bytes() == before
        assert os.listdir(tmp_path) == ["c.pt"]

    def test_a_link_stays_a_link(self, tmp_path) -> None:
        (tmp_path / "link.pt").symlink_to(tmp_path / "real.pt")
        memory.save_checkpoint({"a": torch.ones(1)}, tmp_path / "link.pt")
        assert (tmp_path / "link.pt").is_symlink()
        assert torch.load(tmp_path / "real.pt")["a"] == 1

    def test_a_full_disk_says_so(self, tmp_path, monkeypatch) -> None:
        class Full:
            def write(self, data: bytes) -> int:
                raise OSError(errno.ENOSPC, "No space left on device")

            def flush(self) -> None: ...

        def write_to_a_full_disk(path, write) -> int:
            write(Full())
            return 0

        monkeypatch.setattr("gpulint.memory.transfer.write_atomic_with", write_to_a_full_disk)
        with pytest.raises(OSError, match="No space left"):
            memory.save_checkpoint({"a": torch.ones(1000)}, tmp_path / "c.pt")

    def test_rights_are_those_of_a_normal_file(self, tmp_path, monkeypatch) -> None:
        monkeypatch.chdir(tmp_path)
        mask = os.umask(0o027)
        try:
            memory.save_checkpoint({"a": 1}, "new.pt")
        finally:
            os.umask(mask)
        assert (tmp_path / "new.pt").stat().st_mode & 0o777 == 0o640
        (tmp_path / "new.pt").chmod(0o600)
        memory.save_checkpoint({"a": 2}, "new.pt")
        assert (tmp_path / "new.pt").stat().st_mode & 0o777 == 0o600
        assert torch.load("new.pt") == {"a": 2}


def _trained() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    model = torch.nn.Sequential(torch.nn.Linear(100, 100), torch.nn.BatchNorm1d(100))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(8, 100)).sum().backward()
    optimizer.step()
    return model, optimizer


class TestRelease:
    def test_del_in_a_helper_frees_nothing_and_release_does(self) -> None:
        """The reason for `release`: the caller still holds the model."""
        model, optimizer = _trained()

        def cleanup_model_memory(model: Any) -> None:
            del model
            gc.collect()

        cleanup_model_memory(model)
        assert sum(p.untyped_storage().nbytes() for p in model.parameters()) == 4 * (100 * 100 + 300)
        released = memory.release(model, optimizer, keep=False)
        assert sum(p.untyped_storage().nbytes() for p in model.parameters()) == 0
        assert released.parameters == 4 * (100 * 100 + 100 + 100 + 100)
        assert released.gradients == released.parameters
        assert released.optimizer_state >= 2 * released.parameters
        assert not optimizer.state
        assert all(p.grad is None for p in model.parameters())

    def test_a_kept_model_goes_on_from_where_it_was_as_the_same_objects(self) -> None:
        model, optimizer = _trained()
        before = [(id(p), p.detach().clone()) for p in model.parameters()]
        memory.release(model, optimizer)
        memory.restore(model, optimizer, "cpu")
        now = list(model.parameters())
        assert all(torch.equal(old, new) for (_, old), new in zip(before, now, strict=True))
        assert [number for number, _ in before] == [id(p) for p in now]
        assert [id(p) for p in now] == [id(p) for group in optimizer.param_groups for p in group["params"]]
        model(torch.randn(8, 100)).sum().backward()
        optimizer.step()

    def test_outputs_kept_on_modules_lose_their_graph(self) -> None:
        model = torch.nn.Linear(10, 10)
        model.last_output, token = graph_with_token()
        gc.collect()
        assert token() is not None
        memory.release(model)
        gc.collect()
        assert token() is None
        assert model.last_output.tolist() == [2.0, 2.0]

    def test_tied_memory_counts_once(self) -> None:
        model = torch.nn.Module()
        model.a = torch.nn.Parameter(torch.zeros(1000))
        model.b = torch.nn.Parameter(model.a.data.view(10, 100))
        assert memory.release(model, keep=False).parameters == 4000

    def test_sparse_gradients(self) -> None:
        model = torch.nn.Embedding(100, 8, sparse=True)
        model(torch.tensor([3, 7])).sum().backward()
        released = memory.release(model)
        assert model.weight.grad is None
        assert released.gradients == 2 * 8 * 4 + 2 * 8  # two rows, and their two indices

    def test_several_models_and_nothing(self) -> None:
        one, two = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
        assert memory.release([one, two], keep=False).parameters == 2 * 48
        assert memory.release().moved == 0


def test_a_wrapper_counts_what_it_wraps() -> None:
    """Its own storage has the size of the whole, of which a rank holds a part."""
    from torch.testing._internal.two_tensor import TwoTensor

    from gpulint.memory.live import storage_bytes

    assert storage_bytes(TwoTensor(torch.zeros(64), torch.zeros(64))) == 2 * 64 * 4
