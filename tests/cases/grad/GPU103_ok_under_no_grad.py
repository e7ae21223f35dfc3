import torch
from torch import nn


@torch.no_grad()
def stream_decode(model: nn.Module, chunks, device):
    model.eval()
    state = None
    text = []
    for chunk in chunks:
        logp, state = model(chunk.to(device), state)
        text.extend(logp.argmax(-1).flatten().tolist())
    return text


def rollout(policy, env, steps, device):
    obs = env.reset()
    hx = torch.zeros(1, policy.hidden_size, device=device)
    rewards = 0.0
    for _ in range(steps):
        with torch.no_grad():
            act, hx = policy(torch.as_tensor(obs, device=device)[None], hx)
        obs, r, done, _ = env.step(act.argmax().item())
        rewards += r
        if done:
            obs, hx = env.reset(), torch.zeros_like(hx)
    return rewards
