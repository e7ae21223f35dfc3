import time
from contextlib import ExitStack, contextmanager

import torch
from torch import nn


@contextmanager
def inference_context(model):
    training_mode = model.training
    model.eval()
    yield
    model.train(training_mode)


def inference_on_dataset(model, data_loader, evaluator):
    evaluator.reset()
    start = time.perf_counter()
    with ExitStack() as stack:
        if isinstance(model, nn.Module):
            stack.enter_context(inference_context(model))
        stack.enter_context(torch.no_grad())
        for idx, inputs in enumerate(data_loader):
            outputs = model(inputs)
            evaluator.process(inputs, outputs)
            if idx % 50 == 0:
                print(idx, time.perf_counter() - start)
    return evaluator.evaluate()
