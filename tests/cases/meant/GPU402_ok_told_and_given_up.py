"""Out of memory is told, as everything else is, and noted; nothing is tried again."""

import torch
from transformers import AutoModelForCausalLM


def evaluate(name, batches, tell):
    status, message = "running", ""
    model = AutoModelForCausalLM.from_pretrained(name).cuda().eval()
    try:
        tell("evaluation begins")
        with torch.no_grad():
            scores = [model(ids.cuda(), labels=ids.cuda()).loss.item() for ids in batches]
        tell("evaluation has ended")
    except torch.OutOfMemoryError as error:
        tell("the GPU ran out of memory")
        status, message = "canceled", str(error)
        scores = []
    return {"status": status, "message": message, "scores": scores}
