"""A library of one's own with tensors, parameters and `backward`: nothing of it is torch's."""

import numpy as np
from tinygradients.optim import SGD
from tinygradients.tensor import Tensor

x_data = Tensor(np.random.randn(100, 3))
y_data = x_data @ Tensor(np.array([[-1.0], [3.0], [-2.0]])) + 5.0
w = Tensor(np.random.randn(3, 1), requires_grad=True)
optimizer = SGD([w], 0.001)

history = []
for epoch in range(100):
    epoch_loss = 0.0
    for start in range(0, 100, 32):
        optimizer.zero_grad()
        errors = x_data[start : start + 32] @ w - y_data[start : start + 32]
        loss = (errors * errors).sum()
        loss.backward()
        epoch_loss += loss
        history.append(loss)
        optimizer.step()
    print(epoch, epoch_loss)
