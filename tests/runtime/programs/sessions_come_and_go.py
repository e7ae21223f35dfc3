# Sessions of a thread's, each with a cache that grows until it ends: at any time there are as many as before.
import random
import threading

import torch
from setting import device, make_model


@torch.no_grad()
def serve():
    model, sessions, number = make_model().eval(), {}, 0
    draw = random.Random(0)
    for _ in range(3000):
        while len(sessions) < 6:
            sessions[number], number = torch.empty(0, 4, device=device), number + 1
        for one in list(sessions):
            sessions[one] = torch.cat([sessions[one], model(torch.zeros(8, 32, device=device))])
            if draw.random() < 0.05:
                del sessions[one]


thread = threading.Thread(target=serve)
thread.start()
thread.join()
