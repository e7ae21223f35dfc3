import gc

import torch


def cleanup_model_memory(model):
    del model  # note: GPU405@d
    gc.collect()
    torch.cuda.empty_cache()


def main(make_a, make_b, run):
    a = make_a().cuda()
    run(a)
    cleanup_model_memory(a)  # note: GPU405@d
    b = make_b().cuda()
    run(b)
