"""What is allocated, reserved, free and at most was, printed at each milestone and every so many steps: figures keep nothing."""

import torch
from torch import nn

GIB = 1024**3


def print_memory(when, card=0):
    free, total = torch.cuda.mem_get_info(card)
    allocated, reserved = torch.cuda.memory_allocated(card), torch.cuda.memory_reserved(card)
    retries = torch.cuda.memory_stats(card)["num_alloc_retries"]
    print(
        f"{when}: {allocated / GIB:.2f} of {reserved / GIB:.2f}, {free / GIB:.2f} of {total / GIB:.2f} free, {retries}"
    )
    return {"allocated": allocated, "reserved": reserved, "most": torch.cuda.max_memory_allocated(card)}


def train(network: nn.Module, loader, epochs=3):
    history = [print_memory("start")]
    network.cuda()
    history.append(print_memory("network"))
    optimizer = torch.optim.SGD(network.parameters(), 0.1)
    for epoch in range(epochs):
        for number, batch in enumerate(loader):
            loss = network(batch.cuda()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if number % 50 == 0:
                history.append({"loss": loss.item(), **print_memory(f"step {number}")})
        torch.cuda.reset_peak_memory_stats()
        history.append(print_memory(f"epoch {epoch}"))
    return history
