import torch
from accelerate import Accelerator


def train(model, loader, opt, sched):
    accelerator = Accelerator(gradient_accumulation_steps=4)
    model, opt, loader, sched = accelerator.prepare(model, opt, loader, sched)
    for batch in loader:
        with accelerator.accumulate(model):
            loss = model(**batch).loss
            accelerator.backward(loss)
            opt.step()
            sched.step()
            opt.zero_grad()
            torch.cuda.empty_cache()  # expect: GPU501
