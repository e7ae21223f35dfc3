import tensorflow as tf
import numpy as np

model = tf.keras.Sequential([tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(10)])
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = tf.keras.optimizers.Adam()


def train(ds, epochs):
    losses = []
    for epoch in range(epochs):
        total_loss = 0
        for x, y in ds:
            with tf.GradientTape() as tape:
                outputs = model(x, training=True)
                loss = loss_fn(y, outputs)
            grads = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(grads, model.trainable_variables))
            total_loss += loss
            losses.append(loss)
        print(epoch, float(total_loss) / len(losses))
    return np.array(losses)
