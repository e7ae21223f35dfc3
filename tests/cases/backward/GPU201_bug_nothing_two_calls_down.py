# Generation whose steps, two calls down and behind branches, change the past without a gradient.
import torch
import torch.nn.functional as F


def steer(model, past, last, steps=3):
    for _ in range(steps):
        logits, hidden = model(last, past=past)  # note: GPU201
        past = past + 0.1 * hidden * logits.logsumexp(-1, keepdim=True)
    return past


def generate(model, judge, tokens, label, past=None, steered=True, length=20):
    for _ in range(length):
        last = tokens[:, -1:]
        plain, hidden = model(tokens)  # note: GPU201
        if not steered:
            steered_past = past
        else:
            if past is not None:
                steered_past = steer(model, past, last)
            else:
                steered_past = past
        logits, past = model(last, past=steered_past)
        misfit = F.cross_entropy(judge(hidden.mean(1)), label)
        tokens = torch.cat((tokens, logits.argmax(-1)), 1)
    return tokens, misfit


def sample_many(model, judge, tokens, label, rounds):
    model.eval()
    model.cuda()
    texts, misfits = [], []
    for _ in range(rounds):
        text, misfit = generate(model, judge, tokens, label, steered=True)  # expect: GPU201
        texts.append(text.tolist())
        misfits.append(misfit.data.cpu().numpy())
    return texts, misfits
