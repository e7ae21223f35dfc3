# holder: list `activations` in the closure of `record.save()`
# line: activations.append(output)
# graph: any
from setting import learn, training


def record(module):
    activations = []

    def save(module, inputs, output):
        activations.append(output)

    module.register_forward_hook(save)


def train():
    model, optimizer = training()
    record(model[2])
    for _ in range(1000):
        learn(model, optimizer)


train()
