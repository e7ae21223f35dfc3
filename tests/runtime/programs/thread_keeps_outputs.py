# Only a thread of its own runs the network, and keeps what comes of it.
# holder: list `self.seen` of `Worker`
# line: self.seen.append(self.model(self.jobs.get()))
# kind: eval
# bytes: 4096
import queue
import threading

import torch
from setting import device, make_model


class Worker(threading.Thread):
    def __init__(self, model):
        super().__init__(daemon=True)
        self.model, self.jobs, self.seen = model, queue.Queue(2), []

    @torch.no_grad()
    def run(self):
        while True:
            self.seen.append(self.model(self.jobs.get()))


def main():
    worker = Worker(make_model().eval())
    worker.start()
    for _ in range(5000):
        worker.jobs.put(torch.zeros(256, 32, device=device))


main()
