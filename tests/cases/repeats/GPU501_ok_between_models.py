import gc

import torch
from diffusers import DiffusionPipeline


def render(model_ids, prompts, out):
    """One pipeline at a time: each is dropped before the next is loaded."""
    for mid in model_ids:
        pipe = DiffusionPipeline.from_pretrained(mid, torch_dtype=torch.float16).to("cuda")
        for i, p in enumerate(prompts):
            pipe(p).images[0].save(f"{out}/{mid.replace('/', '_')}_{i}.png")
        del pipe
        gc.collect()
        torch.cuda.empty_cache()
