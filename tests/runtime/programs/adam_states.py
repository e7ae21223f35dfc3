# Adam's states are made in the first step and stay.
from setting import learn, training

model, optimizer = training()
for _ in range(1000):
    learn(model, optimizer)
