from __future__ import annotations

from gpulint.rules._held.claims import HeldRule

from gpulint.rule import Option


class HeldGraph(HeldRule):
    """
    ## What it does
    Finds values with an autograd graph that outlive their iteration: a loss added to a running total, appended to
    a list, put into a dict, or handed to a meter that keeps it.

    With doubts, each in words, it also tells of a step that returns its loss after the backward through it, and of a metric, a
    reporter or a library's function that keeps, or adds up, tensors that its callers hand over.

    ## Why is this bad
    A tensor keeps the graph that made it. Held across iterations, so is everything the graph saved. Where no
    backward goes through the value (evaluation without `no_grad`), that is every activation of every batch: an
    *error*, or where the rounds are no batches or what is held goes out of sight a *warning*, if something shows how much that is. Where `backward()` has
    freed the graph's buffers, its nodes still pile up in host memory, and a running total becomes one ever deeper
    graph: a *note*, which fails no run. Where the forward itself is
    told as a *warning* (GPU201), what keeps its graph is a *note* that names it: one mend serves both.

    `.cpu()`, `.to()`, `.clone()`, `.float()` and indexing keep the graph. `.item()`, `.detach()` and `float()` do not.

    ## What it costs
    A step of a 4-layer transformer language model, batch 16 × 256, leaves behind (NVIDIA H200, torch 2.11):

    | held | GPU | host |
    |---|---|---|
    | loss in an evaluation with grad, summed | 925 MiB | 206 KiB |
    | `out[:, -1].cpu()` of an evaluation with grad, appended | 425 MiB | 2.15 MiB |
    | loss after `backward(retain_graph=True)`, appended | 925 MiB | 211 KiB |
    | loss after `backward()`, appended | 512 B | 131 KiB |
    | loss after `backward()`, summed | nothing | 132 KiB |
    | `loss.detach()`, appended | 512 B | 1.3 KiB |
    | `loss.item()`, appended | 0 B | 740 B |

    A custom `Function` that stores its input on `ctx`, which backward does not free, adds 2.00 MiB a step behind a loss that
    is held after `backward()`; with `save_for_backward` it is 512 B (8-layer MLP).

    ## Example
    ```python
    import torch
    from torch import nn
    from torchvision.models import resnet50

    model = resnet50().cuda()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train(loader):
        total = 0.0
        for inputs, targets in loader:
            loss = criterion(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss
        print(total / len(loader))
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn
    from torchvision.models import resnet50

    model = resnet50().cuda()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train(loader):
        total = 0.0
        for inputs, targets in loader:
            loss = criterion(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(total / len(loader))
    ```

    ## Fix safety
    `.item()` is offered, as safe, where the value is certainly a scalar and every use of what holds it is in sight and a
    number's. Elsewhere `.detach()`, which keeps the type, is offered: as safe where the value is proven to be a tensor and
    no backward can go through what is cut, else as unsafe, with the reason: the sum is returned to a caller that may train
    on it, a layer keeps a term for the loss, `retain_graph=True` keeps the graph for another backward, a callee is not
    seen. Nothing is offered for what may be a tuple or a dict.

    ## Options
    `style`: `"auto"` (default) as above, or `"detach"` to never insert `.item()`, which waits for the GPU.
    """

    code = "GPU101"
    name = "held-graph"
    triggers = (
        tuple(b"torch lightning accelerate deepspeed backward criterion .learn( .train( train_step(".split()),
        (*b"backward .eval() training_step nn. _step( criterion compute_loss detach Tensor .learn( .train(".split(), b"def update"),
        (*b"+= append extend insert .update( .add .log cat(".split(), b"] =", b"= [", b"+ "), (b"for ", b"while ", b"self."),
    )  # fmt: skip
    options = (Option("style", "auto", ("auto", "detach"), "how a held scalar is fixed"),)
