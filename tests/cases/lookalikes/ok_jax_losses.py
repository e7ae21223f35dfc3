import jax
import jax.numpy as jnp
import optax
import torch.utils.data as data


def loss_fn(params, x, y):
    return jnp.mean((x @ params["w"] + params["b"] - y) ** 2)


def train(params, dataset, epochs):
    opt = optax.adam(1e-3)
    state = opt.init(params)
    losses, total_loss = [], 0.0
    for _ in range(epochs):
        for x, y in data.DataLoader(dataset, 32):
            loss, grads = jax.value_and_grad(loss_fn)(params, x.numpy(), y.numpy())
            updates, state = opt.update(grads, state)
            params = optax.apply_updates(params, updates)
            total_loss += loss
            losses.append(loss)
    return params, losses, total_loss
