# Each step leaves a reference cycle behind, which Python's collector takes away later.
# status: gc-garbage
from setting import learn, training


class Node:
    def __init__(self, value):
        self.value = value
        self.itself = self


model, optimizer = training()
for _ in range(1000):
    loss = learn(model, optimizer)
    Node(loss.detach())
