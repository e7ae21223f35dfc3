"""Between the making of the rollouts and the training on them, once a round, after the buffers have been let go."""

import gc

import torch
import torch.nn.functional as F


class ClosedLoop:
    def __init__(self, planner, simulator, rounds):
        self.planner, self.simulator, self.rounds = planner.cuda(), simulator, rounds
        self.opt = torch.optim.AdamW(self.planner.parameters(), 1e-5)

    def run(self):
        for number in range(self.rounds):
            with torch.no_grad():
                buffers = [self.simulator.drive(self.planner) for _ in range(64)]
            pairs = [(b.states.cpu(), b.plans.cpu(), b.advantage()) for b in buffers]
            del buffers
            gc.collect()
            torch.cuda.empty_cache()  # the planner's own batches need the room

            for states, plans, weight in pairs:
                loss = (F.mse_loss(self.planner(states.cuda()), plans.cuda(), reduction="none").mean(1) * weight.cuda()).mean()
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            print(number, "done")
