from __future__ import annotations

from gpulint.rules._held.claims import HeldRule

from gpulint.rule import Option


class GraphInLogger(HeldRule):
    """
    ## What it does
    Finds values with an autograd graph that are handed to a meter, logger, metric or history of another file which
    keeps them. The message shows the line that does. Where the keeping line stands in the same file, the rule is
    GPU101.

    ## Why is this bad
    At the call nothing shows that the value is kept: `meter.update(loss)` looks like a read. The meter adds up
    tensors, so its sum carries the graph of every step since it was reset.

    ## What it costs
    What holding the value costs (GPU101). A loss in the rows of a log after `backward()`: 512 B on the GPU and 131 KiB on the
    host for each step of a 4-layer language model, with `.item()` 0 B and 949 B. Where no backward goes through it: 925 MiB
    a step (NVIDIA H200, torch 2.11).

    ## Example
    ```python
    # file: train.py
    import torch
    from meters import AverageMeter
    from torch import nn
    from torchvision.models import resnet50

    model = resnet50().cuda()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    meter = AverageMeter()

    for inputs, targets in loader:
        loss = criterion(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update(loss)

    # file: meters.py
    class AverageMeter:
        def __init__(self):
            self.sum, self.count = 0.0, 0

        def update(self, value, n=1):
            self.sum += value * n
            self.count += n
    ```

    ## Use instead
    ```python
    # file: train.py
    import torch
    from meters import AverageMeter
    from torch import nn
    from torchvision.models import resnet50

    model = resnet50().cuda()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    meter = AverageMeter()

    for inputs, targets in loader:
        loss = criterion(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update(loss.detach())

    # file: meters.py
    class AverageMeter:
        def __init__(self):
            self.sum, self.count = 0.0, 0

        def update(self, value, n=1):
            self.sum += value * n
            self.count += n
    ```

    ## Fix safety
    The fix hands over `.detach()`, which keeps the type: safe where the value is proven to be a tensor, and the function
    that gets it does nothing with its graph.
    """

    code = "GPU104"
    name = "graph-in-logger"
    triggers = (
        (b"torch", b"lightning", b"accelerate", b"deepspeed"), (b"import ",), (b"for ", b"while ", b"self."),
        (b"backward", b".eval()", b"training_step", b"_step(", b"compute_loss"),
    )  # fmt: skip
    options = (Option("style", "auto", ("auto", "detach"), "how a held scalar is fixed"),)
