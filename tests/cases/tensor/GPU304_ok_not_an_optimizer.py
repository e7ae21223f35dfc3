import numpy as np
import torch


class Tape:
    def zero_grad(self, set_to_none=False):
        self.g = None if set_to_none else np.zeros(3)


def run(n):
    tape = Tape()
    for _ in range(n):
        tape.zero_grad(set_to_none=False)
    return torch.from_numpy(tape.g)
