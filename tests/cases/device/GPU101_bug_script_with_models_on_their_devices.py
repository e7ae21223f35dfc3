"""A script whose model is wherever its library puts it, beside a copy that was trained on a device."""

import torch
from elsewhere import Model, batches, trained_copy

model = Model.from_pretrained("small")
model.config.use_cache = False
loader = batches(size=16, device=torch.device(model.config.device))
copy = trained_copy(model, loader, device=torch.device(model.config.device))
print(sum(p.numel() for p in copy.parameters()), sum(p.numel() for p in model.parameters()))

plain, copied = [], []
for batch in loader:
    plain.append(torch.log_softmax(model(batch.tokens)[:, -1], dim=-1))  # expect: GPU101, GPU201
    rest = batch.tokens[:, 3:]
    copied.append(torch.log_softmax(copy(rest)[:, -1], dim=-1))  # expect: GPU101
print(torch.nn.functional.kl_div(torch.cat(plain), torch.cat(copied)).item())
