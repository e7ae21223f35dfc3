import torch
import torch.nn.functional as F


def train(model, loader, optimizer, accum, device):
    model.train()
    train_loss = 0
    n_correct = 0
    for i, (img, lab) in enumerate(loader, start=1):
        img, lab = img.to(device), lab.to(device)
        out = model(img)
        loss = F.cross_entropy(out, lab) / accum
        loss.backward(retain_graph=True)  # expect: GPU301
        if i % accum == 0:
            optimizer.step()
            optimizer.zero_grad()
            torch.cuda.empty_cache()  # maybe: GPU501
        train_loss += loss * accum  # expect: GPU101
        n_correct += (out.argmax(1) == lab).sum().item()
    return train_loss / len(loader), n_correct
