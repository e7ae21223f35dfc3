import torch


def score_dataset(reward_model, tokenizer, pairs, device="cuda"):
    chosen_scores, margins = [], 0.0
    reward_model.to(device)
    reward_model.eval()
    for prompt, chosen, rejected in pairs:
        a = tokenizer(prompt + chosen, return_tensors="pt").to(device)
        b = tokenizer(prompt + rejected, return_tensors="pt").to(device)
        ra = reward_model(**a).logits[0]  # expect: GPU201
        rb = reward_model(**b).logits[0]  # maybe: GPU201
        chosen_scores.append(ra)  # expect: GPU101
        margins += ra - rb  # expect: GPU101
    return torch.stack(chosen_scores), margins / len(pairs)
