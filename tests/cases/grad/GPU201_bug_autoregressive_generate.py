import torch


def generate(model, idx, max_new_tokens, block_size):
    """Greedy decoding with a model that was trained elsewhere."""
    model.eval()
    for _ in range(max_new_tokens):
        logits = model(idx[:, -block_size:])  # expect: GPU201  # maybe: GPU401
        nxt = logits[:, -1].argmax(-1, keepdim=True)  # maybe: GPU401
        idx = torch.cat((idx, nxt), dim=1)
    return idx


def main(path, make_model, encode, decode, prompt):
    model = make_model().cuda()
    model.load_state_dict(torch.load(path, map_location="cpu"))
    idx = torch.tensor([encode(prompt)], device="cuda")
    print(decode(generate(model, idx, 200, 256)[0].tolist()))
