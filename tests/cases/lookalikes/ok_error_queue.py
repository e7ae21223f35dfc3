import queue
import threading

import torch

errors = []
error_queue = queue.Queue()


def worker(jobs):
    while True:
        job = jobs.get()
        if job is None:
            return
        try:
            job.run(torch.device("cuda"))
        except Exception as err:
            errors.append(str(err))
            error_queue.put((job.name, str(err)))


def report():
    total = 0
    while not error_queue.empty():
        name, err = error_queue.get()
        print(name, err)
        total += 1
    return total


def start(jobs, n=4):
    threads = [threading.Thread(target=worker, args=(jobs,)) for _ in range(n)]
    for t in threads:
        t.start()
    return threads
