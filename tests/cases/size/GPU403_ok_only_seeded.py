import torch


def resume(policy, optimizer, path, seed):
    """A seed is all that the GPU gets."""
    torch.cuda.manual_seed_all(seed)
    state = torch.load(path)
    policy.load_state_dict(state["policy"])
    optimizer.load_state_dict(state["optimizer"])
