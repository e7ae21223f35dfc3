"""The checkpoint of a large model and its optimizer is loaded the same way, and the name holds it all through the training."""

import argparse

import torch
from transformers import AutoModelForSeq2SeqLM


def main(loader):
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", default="")
    args = parser.parse_args()
    model = AutoModelForSeq2SeqLM.from_pretrained("t5-3b").cuda()
    opt = torch.optim.AdamW(model.parameters(), 2e-4)
    first = 0
    if args.resume:
        saved = torch.load(args.resume)  # expect: GPU403
        model.load_state_dict(saved["model"])
        opt.load_state_dict(saved["opt"])
        first = saved["epoch"]
    for epoch in range(first, 25):
        for ids, labels in loader:
            loss = model(input_ids=ids.cuda(), labels=labels.cuda()).loss
            opt.zero_grad()
            loss.backward()
            opt.step()
        torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "epoch": epoch + 1}, f"{epoch}.pth")
