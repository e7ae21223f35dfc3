# A running sum that is read and reset every five steps.
from setting import learn, training

model, optimizer = training()
running = 0.0
for step in range(1000):
    loss = learn(model, optimizer)
    running += loss.detach()
    if step % 5 == 4:
        print(running.item() / 5)
        running = 0.0
