"""A script asks for its model on the CPU; what runs beside it on the same batches is there as well."""

import torch
from elsewhere import Model, batches, trained_copy

model = Model.from_pretrained("small", device="cpu")
model.config.use_cache = False
loader = batches(size=16, device=torch.device(model.config.device))
copy = trained_copy(model, loader, device=torch.device(model.config.device))
print(sum(p.numel() for p in copy.parameters()), sum(p.numel() for p in model.parameters()))

plain, copied = [], []
for batch in loader:
    plain.append(torch.log_softmax(model(batch.tokens)[:, -1], dim=-1))
    rest = batch.tokens[:, 3:]
    copied.append(torch.log_softmax(copy(rest)[:, -1], dim=-1))
print(torch.nn.functional.kl_div(torch.cat(plain), torch.cat(copied)).item())
