import torch
import torch.nn.functional as F


def fgsm_attack(image, epsilon, data_grad):
    return torch.clamp(image + epsilon * data_grad.sign(), 0, 1)


def test(model, device, test_loader, epsilon):
    model.eval()
    correct = 0
    adv_examples = []
    for data, target in test_loader:
        data, target = data.to(device), target.to(device)
        data.requires_grad = True
        output = model(data)  # low: GPU202
        init_pred = output.max(1, keepdim=True)[1]
        if init_pred.item() != target.item():
            continue
        loss = F.nll_loss(output, target)
        model.zero_grad()
        loss.backward()
        perturbed = fgsm_attack(data, epsilon, data.grad.data)
        with torch.no_grad():
            final = model(perturbed).max(1, keepdim=True)[1]
        if final.item() == target.item():
            correct += 1
        elif len(adv_examples) < 5:
            adv_examples.append((init_pred.item(), final.item(), perturbed.squeeze().detach().cpu().numpy()))
    return correct / len(test_loader), adv_examples
