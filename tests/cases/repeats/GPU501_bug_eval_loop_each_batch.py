import torch
from tqdm import tqdm


@torch.no_grad()
def evaluate(model, loader, metric):
    model.eval()
    for batch in tqdm(loader, desc="eval"):
        x, y = batch[0].cuda(), batch[1].cuda()
        pred = model(x).argmax(1)
        metric.add(pred.cpu(), y.cpu())
        del x, y, pred
        torch.cuda.empty_cache()  # note: GPU501
    return metric.compute()
