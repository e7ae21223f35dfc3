import torch
from torch import nn


def run(model, train_loader, val_loader, opt, epochs, save_every):
    step = 0
    for epoch in range(epochs):
        model.train()
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()
            step += 1
            if step % save_every == 0:
                torch.save(model.state_dict(), f"step{step}.pt")
                torch.cuda.empty_cache()  # maybe: GPU501
        model.eval()
        hits = 0
        with torch.no_grad():
            for x, y in val_loader:
                hits += (model(x.cuda()).argmax(1).cpu() == y).sum().item()
        torch.cuda.empty_cache()
        print(epoch, hits)
