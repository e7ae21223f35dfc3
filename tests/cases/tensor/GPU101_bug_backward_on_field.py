"""A task of unknown class gives a dict; backward goes through one field, and the whole dict is kept."""

import torch
from tasks import make_task


class Runner:
    def __init__(self, settings):
        self.settings = settings
        self.task = make_task(settings)

    def run(self, batches):
        optimizer = torch.optim.AdamW(self.task.parameters(), lr=3e-4)
        collected = []
        worst = 0.0
        for number, batch in enumerate(batches):
            report = self.task.compute(batch, number)
            optimizer.zero_grad()
            report["objective"].backward()
            optimizer.step()
            worst = max(worst, float(report["objective"]))
            collected.append(report)  # expect: GPU101
        return self.task.summarise(collected), worst


def run_loss_field(engine, batches, optimizer):
    total = 0.0
    for batch in batches:
        result = engine.compute(batch)
        optimizer.zero_grad()
        result.objective.backward()
        optimizer.step()
        total += result.objective  # expect: GPU101
    return total
