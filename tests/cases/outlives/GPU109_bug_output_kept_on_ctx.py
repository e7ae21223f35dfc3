"""Operations that keep what they return as an attribute of `ctx`: it holds its graph, and the graph holds `ctx`."""
import torch
from torch import nn
from torch.autograd import Function


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.y = y  # expect: GPU109
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.y


class Softmax(Function):
    @staticmethod
    def forward(ctx, scores, dim):
        ctx.dim = dim
        top = scores.max(dim, keepdim=True).values
        weights = (scores - top).exp()
        ctx.result = out = weights / weights.sum(dim, keepdim=True)  # expect: GPU109
        return out

    @staticmethod
    def backward(ctx, grad):
        inner = (grad * ctx.result).sum(ctx.dim, keepdim=True)
        return ctx.result * (grad - inner), None


class Solve(Function):
    @staticmethod
    def forward(ctx, func, y, has_event):
        with torch.no_grad():
            found = func(y)
            if has_event:
                when, last = found
                ctx.when = when  # expect: GPU109
            else:
                last = found
        ctx.save_for_backward(last)
        return found

    @staticmethod
    def backward(ctx, *grads):
        (last,) = ctx.saved_tensors
        return None, grads[-1] * last, None


class Sigmoid(Function):
    @staticmethod
    def forward(x):
        return x.sigmoid()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.output = output  # expect: GPU109

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.output * (1 - ctx.output)


class Cached(Function):
    """Where a backward comes, it lets go of it."""

    @staticmethod
    def forward(ctx, x):
        out = x.square()
        ctx.cache = (x.shape, out)  # low: GPU109
        return out

    @staticmethod
    def backward(ctx, grad):
        _, out = ctx.cache
        ctx.cache = None
        return 2 * grad * out.sqrt()


class Together(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        half, out = x / 2, x.tanh()
        ctx.half, ctx.out = half, out  # expect: GPU109
        return out

    @staticmethod
    def backward(ctx, grad):
        return grad * (1 - ctx.out.square()) + 0 * ctx.half


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        x = Sigmoid.apply(Exp.apply(self.linear(x)))
        return Cached.apply(Solve.apply(torch.tanh, Softmax.apply(x, -1), False))
