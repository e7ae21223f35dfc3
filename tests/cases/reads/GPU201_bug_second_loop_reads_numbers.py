"""Training, then a count of hits on other data, in one function, without eval mode or no_grad."""


def epoch(model, loader, held_out, loss_of, optimizer):
    for images, labels in loader:
        optimizer.zero_grad()
        loss_of(model(images), labels).backward()
        optimizer.step()
    for images, labels in held_out:
        scores = model(images)  # expect: GPU201
