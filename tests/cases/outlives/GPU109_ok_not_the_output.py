"""What operations keep on `ctx` is not what they return, or has no graph: nothing goes in a circle."""
import torch
from elsewhere import prepared
from torch.autograd import Function


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        ctx.shape, ctx.dtype = y.shape, y.dtype
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]


class Scale(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor, ctx.x = factor, x
        factor = factor * 2
        ctx.kept = x * factor
        y = x * factor + 1
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor * 2, (grad * ctx.x).sum()


class Top(Function):
    @staticmethod
    def forward(ctx, x):
        value, index = x.max(-1)
        picked = index.clone()
        ctx.mark_non_differentiable(picked)
        ctx.picked = picked
        return value, picked

    @staticmethod
    def backward(ctx, grad, _):
        return torch.nn.functional.one_hot(ctx.picked) * grad.unsqueeze(-1)


class Same(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad


class Copied(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.y = y.detach()
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.y


class Parts(Function):
    """Of what a call gives it returns one part, and keeps another."""

    @staticmethod
    def forward(ctx, x):
        y, ctx_scale = torch.frexp(x)
        values, places, rows = prepared(x)
        ctx.scale, ctx.rows = ctx_scale, rows
        ctx.kept = places
        first, second = x.exp(), x.log()
        ctx.second = second
        return first, values

    @staticmethod
    def backward(ctx, grad, _):
        return grad * ctx.scale * ctx.second


class Beside(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        half, out = x / 2, x.tanh()
        ctx.half, ctx.shape = half, x.shape
        return out

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.half


class Helper:
    """No operation: what it keeps it holds like anything else."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.y = y
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.y
