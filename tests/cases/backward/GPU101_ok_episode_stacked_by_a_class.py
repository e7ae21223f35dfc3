"""An agent keeps the features of an episode; a class stacks them, and the training step goes through them."""

import torch


class Sequence:
    def __init__(self, fields):
        self.fields = fields

    @classmethod
    def array(cls, many):
        fields = {}
        for key in many[0].fields:
            try:
                fields[key] = torch.stack([one.fields[key] for one in many])
            except TypeError:
                fields[key] = [one.fields[key] for one in many]
        return cls(fields)


class Agent:
    def __init__(self, features, policy, value, optimizer):
        self.features, self.policy, self.value, self.optimizer = features, policy, value, optimizer
        self._seen = []
        self._chosen = []
        self._done = []

    def eval(self, state):
        return self.policy.eval(self.features.eval(state))

    def act(self, state):
        seen = self.features(state)
        chances = self.policy(seen)
        action = chances.sample()
        self._seen.append(seen)
        self._chosen.append(chances.log_prob(action))
        return action

    def end(self, reward):
        seen = Sequence.array(self._seen)
        chosen = torch.stack(self._chosen)
        self._done.append((seen, torch.tensor(reward, device=seen.device), chosen))
        self._seen = []
        self._chosen = []
        if len(self._done) > 8:
            self._learn()

    def _learn(self):
        values = torch.cat([self.value(seen) for seen, _, _ in self._done])
        chosen = torch.cat([chosen for _, _, chosen in self._done])
        wanted = torch.cat([reward for _, reward, _ in self._done])
        loss = torch.nn.functional.mse_loss(values, wanted) - (chosen * (wanted - values.detach())).mean()
        loss.backward()
        self.value.step(loss=loss)
        self.optimizer.step()
        self._done = []
