import numpy as np


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))


class LogisticRegression:
    def __init__(self, lr=0.1, n_iter=1000):
        self.lr = lr
        self.n_iter = n_iter
        self.losses = []

    def fit(self, X, y):
        self.w = np.zeros(X.shape[1])
        total_loss = 0
        for i in range(self.n_iter):
            p = sigmoid(X @ self.w)
            loss = -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))
            self.w -= self.lr * X.T @ (p - y) / len(y)
            self.losses.append(loss)
            total_loss += loss
        return total_loss / self.n_iter
