"""Whatever goes backward, or differentiates: no safe fix cuts what it goes through."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from typing import Any

import pytest
from gpulint.rules import all_rules

from gpulint.findings import Confidence, Finding
from gpulint.fix.fixing import fix_text
from gpulint.lint.linter import lint_text
from gpulint.rule import RuleSet

RULES = RuleSet(all_rules(), confidence=Confidence.LOW)


class Through(Enum):
    """What a call goes backward through."""

    OBJECT = "its object"  # `loss.backward()`
    GIVEN = "what it is given"  # `torch.autograd.grad(loss, inputs)`, `accelerator.backward(loss)`
    FUNCTION = "a function, module or object that it is given"  # `jacobian(f, x)`, `HMC(model)`
    RERUN = (
        "a function that runs within a backward or runs one"  # `checkpoint(f, x)`, `optimizer.step(closure)`
    )
    TRAINING = "a module that it trains, or trains with"  # `Trainer(model)`
    LATER = "what somebody asks for later"  # `x.requires_grad_()`, a hook on gradients


@dataclass(frozen=True, slots=True)
class Api:
    """One way to go backward.

    `name` is a qualified name, or with a point before it a method's; one that ends in a point covers all that begins so.
    """

    name: str
    through: Through

    @property
    def is_method(self) -> bool:
        return self.name.startswith(".")

    @property
    def last(self) -> str:
        return self.name.rstrip(".").rpartition(".")[2]


def _apis(through: Through, names: str) -> tuple[Api, ...]:
    return tuple(Api(name, through) for name in names.split())


_TORCH = (
    *_apis(
        Through.GIVEN,
        "torch.autograd.backward torch.autograd.grad torch.distributed.autograd.backward",
    ),
    *_apis(
        Through.FUNCTION,
        "torch.autograd.functional. torch.autograd.gradcheck torch.autograd.gradgradcheck torch.autograd.gradcheck. "
        "torch.autograd.forward_ad. torch.func. torch.vmap torch.nn.utils.stateless.functional_call torch._functorch. "
        "torch.cuda.make_graphed_callables torch.distributed.autograd. torch.distributed.rpc. torch.distributed.optim. "
        "torch.distributed.nn.RemoteModule torch.distributed.nn.api. torch.distributed.pipelining. torch.distributed.pipeline.",
    ),
    *_apis(Through.RERUN, "torch.utils.checkpoint."),
)

# Methods, whatever their object: of tensors, and of the frameworks that go backward on the user's behalf.
_METHODS = (
    *_apis(Through.OBJECT, ".backward"),
    *_apis(
        Through.GIVEN,
        ".manual_backward .update_params .scaled_backward .optimizer_backward .clip_backward .scale_loss",
    ),
    *_apis(
        Through.FUNCTION,
        ".jacobian .hessian .vjp .jvp .vhp .hvp .jacrev .jacfwd .grad_and_value .functional_call .vmap "
        ".forward_backward_func .rpc_sync .rpc_async .forward_async .train_batch .attribute .optimize_acqf .gradcheck "
        ".gradgradcheck",
    ),
    *_apis(Through.RERUN, ".step"),
    *_apis(
        Through.LATER,
        ".requires_grad_ .retain_grad .register_hook .register_full_backward_hook .register_full_backward_pre_hook "
        ".register_backward_hook .register_post_accumulate_grad_hook .register_multi_grad_hook",
    ),
)

# Libraries, by how their qualified names begin, whose calls train, differentiate or sample by gradients.
_LIBRARIES = (
    *_apis(
        Through.FUNCTION,
        "functorch. captum. hamiltorch. pyro.infer. numpyro.infer. botorch.optim. botorch.fit. sbi.inference. sbi.samplers. "
        "higher. learn2learn. torchopt. betty. torchattacks. foolbox. art.attacks. advertorch. autoattack. cleverhans. "
        "torchdiffeq. torchsde. torchode. torchdyn. torchmin. shap. quantus. zennit. pytorch_grad_cam. torchcam. lucent. "
        "backpack. asdl. asdfghjkl. curvlinops. laplace. pyhessian.",
    ),
    *_apis(
        Through.TRAINING,
        "gpytorch.mlls. opacus. transformers.Trainer transformers.Seq2SeqTrainer transformers.trainer. trl. "
        "ignite.engine.create_supervised_trainer pytorch_lightning.Trainer lightning.Trainer lightning.pytorch.Trainer "
        "fairseq.trainer. mmengine.runner. mmcv.runner. composer.Trainer fastai. skorch. catalyst. torchgpipe. "
        "fairscale.nn.pipe. torch.optim.LBFGS",
    ),
    *_apis(Through.GIVEN, "apex.amp.scale_loss"),
)

APIS = (*_TORCH, *_METHODS, *_LIBRARIES)

# A forward whose result goes into what the table says, beside what would otherwise be wasted.
GIVEN = """
{imports}
import torch
from torch import nn


def run(loader, other):
    model = nn.Linear(4, 1).cuda().eval()
    held = []
    for x in loader:
        out = model(x.cuda())
        {call}
        print(out.mean().item())
        held.append(out.mean())
    print(sum(held).item())
"""

# A function that is handed to what the table says.
FUNCTION = """
{imports}
import torch
from torch import nn

model = nn.Linear(4, 1).cuda().eval()


def density(parts):
    held = []
    for x in parts:
        out = model(x.cuda())
        print(out.mean().item())
        held.append(out.mean())
    print(sum(held).item())


def run(loader, other):
    for x in loader:
        {call}
"""


def called(api: Api) -> tuple[str, str]:
    """The import that an entry needs, and what to call."""
    if api.is_method:
        return "", f"other{api.name}"
    name = api.name + "anything" if api.name.endswith(".") else api.name
    owner, _, last = name.rpartition(".")
    return f"from {owner} import {last}", last


def program(api: Api) -> str:
    imports, callee = called(api)
    if api.through in (Through.FUNCTION, Through.TRAINING, Through.RERUN):
        return FUNCTION.format(imports=imports, call=f"{callee}(density, x)")
    if api.through is Through.LATER:
        return GIVEN.format(imports=imports, call=f"out{api.name}(print)")
    if api.through is Through.OBJECT:
        return GIVEN.format(imports=imports, call=f"out.sum(){api.name}()")
    return GIVEN.format(imports=imports, call=f"{callee}(out)")


def claims_no_backward(text: str) -> list[Finding]:
    """The findings that offer, as safe, to switch grad off or to cut a graph that no backward has gone through."""
    return [
        finding
        for finding in lint_text(text, "train.py", RULES)
        if finding.fix is not None and finding.fix.applicability == "safe"
        if finding.code in ("GPU201", "GPU202") or finding.reason.startswith("graph live")
    ]


# What a tensor does not have, or not so: the program that is made for it raises there.
NOT_OF_TENSORS = (
    ".requires_grad_",  # what has a graph wants its gradient anyway, and takes no function
    ".register_full_backward_hook",
    ".register_full_backward_pre_hook",
    ".register_backward_hook",
    ".register_multi_grad_hook",
)


@pytest.mark.parametrize(
    "api", [api for api in APIS if api.name not in NOT_OF_TENSORS], ids=lambda api: api.name
)
def test_no_safe_fix_cuts_what_it_goes_through(api: Api) -> None:
    assert claims_no_backward(program(api)) == []


@pytest.mark.parametrize("frame", [GIVEN, FUNCTION], ids=["given", "function"])
def test_without_an_entry_there_is_one(frame: str) -> None:
    """What the test above forbids is there where nobody goes backward."""
    assert claims_no_backward(frame.format(imports="import math", call="print(x.shape)"))


@pytest.mark.parametrize("call", ["table.solve(out)", "torch.ops.mine.adapt(out)", "torch._C.fit(out)"])
def test_what_is_not_seen_may_go_backward(call: str) -> None:
    assert (
        claims_no_backward(
            GIVEN.format(imports="import table", call=call).replace("print(sum", "table.see(sum")
        )
        == []
    )


# torch's own, run on the CPU

TRAINING = """
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def train(batches):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1)).to(device)
    opt = torch.optim.SGD(model.parameters(), 0.1)
    weights = list(model.parameters())
    kept, total = [], 0.0
    for x, y in batches:
        x, y = x.to(device), y.to(device)
        opt.zero_grad()
{step}
        print(loss.item())
        kept.append(loss)
        total += loss
    return weights, float(total), float(sum(kept))
"""
LOSS = "loss = (model(x) - y).pow(2).mean()\n"
STEPS = {
    ".backward": LOSS + "loss.backward()\nopt.step()",
    "torch.autograd.backward": LOSS + "torch.autograd.backward([loss])\nopt.step()",
    "torch.autograd.grad": LOSS
    + "for p, g in zip(weights, torch.autograd.grad(loss, weights)):\n    p.grad = g\nopt.step()",
    "torch.autograd.functional.": """out = model(x)
penalty = torch.autograd.functional.jacobian(lambda z: model(z).sum(), x, create_graph=True).pow(2).mean()
loss = (out - y).pow(2).mean() + penalty
loss.backward()
opt.step()""",
    "torch.func.": """def cost(params):
    return (torch.func.functional_call(model, params, (x,)) - y).pow(2).mean()
grads, loss = torch.func.grad_and_value(cost)(dict(model.named_parameters()))
for name, p in model.named_parameters():
    p.grad = grads[name].detach()
opt.step()""",
    "torch.vmap": """per = torch.vmap(lambda z: torch.func.functional_call(model, dict(model.named_parameters()), (z,)))(x)
loss = (per - y).pow(2).mean()
loss.backward()
opt.step()""",
    "torch.nn.utils.stateless.functional_call": """out = torch.nn.utils.stateless.functional_call(model, dict(model.named_parameters()), (x,))
loss = (out - y).pow(2).mean()
loss.backward()
opt.step()""",
    "torch.autograd.gradcheck": LOSS
    + "torch.autograd.gradcheck(lambda z: z.pow(2).sum(), x.double().requires_grad_())\nloss.backward()\nopt.step()",
    "torch.autograd.gradgradcheck": LOSS
    + "torch.autograd.gradgradcheck(lambda z: z.pow(3).sum(), x.double().requires_grad_())\nloss.backward()\nopt.step()",
    "torch.autograd.forward_ad.": """import torch.autograd.forward_ad as fwAD
with fwAD.dual_level():
    slope = fwAD.unpack_dual(model(fwAD.make_dual(x, torch.ones_like(x)))).tangent
    loss = (model(x) - y).pow(2).mean() + slope.pow(2).mean()
    loss.backward()
opt.step()""",
    "torch.utils.checkpoint.": """from torch.utils.checkpoint import checkpoint
out = checkpoint(model, x, use_reentrant=False)
loss = (out - y).pow(2).mean()
loss.backward()
opt.step()""",
    ".step": """lbfgs = torch.optim.LBFGS(weights, lr=0.1, max_iter=2)
def closure():
    lbfgs.zero_grad()
    inner = (model(x) - y).pow(2).mean()
    inner.backward()
    return inner
loss = lbfgs.step(closure)""",
    ".requires_grad_": """x.requires_grad_()
out = model(x)
slope, = torch.autograd.grad(out.sum(), x, create_graph=True)
loss = (out - y).pow(2).mean() + slope.pow(2).mean()
loss.backward()
opt.step()""",
    ".retain_grad": """out = model(x)
out.retain_grad()
loss = (out - y).pow(2).mean()
loss.backward()
opt.step()
loss = loss + out.grad.sum()""",
    ".register_hook": """out = model(x)
out.register_hook(lambda g: 2 * g)
loss = (out - y).pow(2).mean()
loss.backward()
opt.step()""",
}
# What needs several processes, a GPU, or a module that torch no longer has; and methods that name no one API of torch.
NOT_RUN = (
    "torch.distributed.", "torch.cuda.", "torch._functorch.", "torch.autograd.gradcheck.", ".register_", ".manual_backward",
    ".update_params", ".scaled_backward", ".optimizer_backward", ".clip_backward", ".scale_loss", ".forward_backward_func",
    ".rpc_", ".forward_async", ".train_batch", ".attribute", ".optimize_acqf", ".functional_call", ".grad_and_value", ".vmap",
    ".jac", ".hessian", ".vjp", ".jvp", ".vhp", ".hvp", ".gradcheck", ".gradgradcheck",
)  # fmt: skip


def test_each_of_torchs_own_is_run_or_cannot_be() -> None:
    own = [api.name for api in APIS if api.is_method or api.name.startswith("torch.")]
    left = [
        name for name in own if name not in STEPS and not name.startswith((*NOT_RUN, "torch.optim.LBFGS"))
    ]
    assert left == []
    assert set(STEPS) <= set(own)


def outcome(text: str) -> Any:
    import torch

    space: dict[str, Any] = {}
    exec(compile(text, "train.py", "exec"), space)
    torch.manual_seed(1)
    weights, *sums = space["train"]([(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(3)])
    return [weight.tolist() for weight in weights], sums


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed; programs import it")
@pytest.mark.parametrize("name", STEPS)
def test_fixed_programs_train_the_same(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    step = "".join(f"        {line}\n" for line in STEPS[name].splitlines())
    text = TRAINING.format(step=step)
    done = fix_text(text, lambda source: lint_text(source, "train.py", RULES), False).text
    (weights, sums), (wanted, same_sums) = outcome(done), outcome(text)
    assert weights == wanted
    assert sums == pytest.approx(same_sums)  # `.item()` adds up in double precision


def test_a_plain_step_has_something_to_fix() -> None:
    step = "".join(f"        {line}\n" for line in STEPS[".backward"].splitlines())
    text = TRAINING.format(step=step)
    assert fix_text(text, lambda source: lint_text(source, "train.py", RULES), False).text != text
