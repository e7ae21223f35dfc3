import torch
from tqdm import tqdm


def run(model, criterion, optimizer, loaders, device, n_epochs):
    for epoch in range(n_epochs):
        for phase in ("train", "val"):
            model.train(phase == "train")
            total = 0.0
            for inputs, labels in tqdm(loaders[phase]):
                inputs, labels = inputs.to(device), labels.to(device)
                outputs = model(inputs)  # expect: GPU201
                loss = criterion(outputs, labels)
                if phase == "train":
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                total += loss.item() * inputs.size(0)
            print(epoch, phase, total / len(loaders[phase].dataset))
