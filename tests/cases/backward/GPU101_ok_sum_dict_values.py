import torch


def train_one_epoch(model, criterion, data_loader, optimizer, device, max_norm=0.1):
    model.train()
    weight_dict = criterion.weight_dict
    stats = {}
    for samples, targets in data_loader:
        samples = samples.to(device)
        targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
        outputs = model(samples)
        loss_dict = criterion(outputs, targets)
        losses = sum(loss_dict[k] * weight_dict[k] for k in loss_dict.keys() if k in weight_dict)
        optimizer.zero_grad()
        losses.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        for k, v in loss_dict.items():
            stats[k] = stats.get(k, 0.0) + v.item()  # maybe: GPU504
    return {k: v / len(data_loader) for k, v in stats.items()}
