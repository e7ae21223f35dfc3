"""DeepSpeed's engine: the sum is over the micro-batches of one step, and the caller reads a number."""


class Trainer:
    def __init__(self, engine, batches):
        self.engine, self.batches = engine, batches

    def step(self):
        rounds = self.engine.gradient_accumulation_steps()
        total = 0.0
        for _ in range(rounds):
            tokens = next(self.batches).to(self.engine.device)
            loss = self.engine(tokens, labels=tokens)[0].mean()
            self.engine.backward(loss)
            self.engine.step()
            total += loss
        return total / rounds

    def train(self, steps):
        for number in range(steps):
            loss = self.step()
            if number % 50 == 0:
                print(loss.item())


class WholeEpoch:
    def __init__(self, engine, batches):
        self.engine, self.batches = engine, batches

    def epoch(self, rounds):
        total = 0.0
        for _ in range(rounds):
            tokens = next(self.batches).to(self.engine.device)
            loss = self.engine(tokens, labels=tokens)[0].mean()
            self.engine.backward(loss)
            self.engine.step()
            total += loss  # expect: GPU101
        return total / rounds
