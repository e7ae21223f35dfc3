from __future__ import annotations

from gpulint.rules._held.claims import HeldRule


class UpdateUnderGrad(HeldRule):
    """
    ## What it does
    Finds running averages that are updated with grad enabled from something that has a graph: moving averages of
    weights, target networks, running statistics of activations, baselines.

    With doubts, each in words, it also tells of buffers and attributes that take in what they are given,
    which may have a graph.

    ## Why is this bad
    The average then has a graph of its own, and each update puts one more link into it: the chain reaches back to the
    first step and is never freed. Fed into the loss, it makes the next backward fail, or asks for `retain_graph`.

    ## What it costs
    Host memory: 47.8 KiB a step for a moving average of the weights of an 8-layer MLP, 663 B under `no_grad`; 23.3 KiB
    for a running mean of its outputs, 592 B with `detach()`. On the GPU that costs next to nothing as long as a
    backward frees the graph: the peak is 132 MiB either way, and a step takes 2.00 instead of 1.92 ms. Where no
    backward goes through it, the mean keeps 32.0 MiB of activations a step (NVIDIA H200, torch 2.11).

    ## Example
    ```python
    import torch

    class Average:
        def __init__(self, model: torch.nn.Module, decay=0.999):
            self.decay = decay
            self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}

        def update(self, model: torch.nn.Module):
            for name, p in model.named_parameters():
                self.shadow[name] = self.decay * self.shadow[name] + (1 - self.decay) * p
    ```

    ## Use instead
    ```python
    import torch

    class Average:
        def __init__(self, model: torch.nn.Module, decay=0.999):
            self.decay = decay
            self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}

        def update(self, model: torch.nn.Module):
            for name, p in model.named_parameters():
                self.shadow[name] = self.decay * self.shadow[name] + (1 - self.decay) * p.detach()
    ```

    Or decorate the updating method with `@torch.no_grad()`.

    ## Fix safety
    `.detach()` on what is averaged in, and on what the average starts from, keeps every value and type: safe. Where the
    result is computed from the average, or is read by code that is not seen, a backward may go through it: unsafe. It is
    offered where the code names it.
    """

    code = "GPU107"
    name = "update-under-grad"
    triggers = (
        (b"torch", b"lightning"), (b"parameters()", b"backward", b"def forward"), (b"*", b"lerp", b"mul_", b"add_"),
        (b"self.", b"decay", b"momentum", b"0.9", b"beta", b"alpha", b"tau"),
    )  # fmt: skip
