"""What a policy says in each step of a long rollout is kept on the GPU, though the learner wants arrays."""

import numpy as np
import torch


class Collector:
    def __init__(self, policy: torch.nn.Module, envs, horizon=4096):
        self.policy, self.envs, self.horizon = policy.cuda(), envs, horizon

    def collect(self):
        frames, log_probs, values = [], [], []
        seen = self.envs.reset()
        with torch.no_grad():
            for _ in range(self.horizon):
                pixels = torch.as_tensor(seen, device="cuda", dtype=torch.float32) / 255
                features = self.policy.trunk(pixels)
                choice = torch.distributions.Categorical(logits=self.policy.head(features))
                action = choice.sample()
                frames.append(features)  # expect: GPU102
                log_probs.append(choice.log_prob(action).cpu().numpy())
                seen, reward, done, _ = self.envs.step(action.cpu().numpy())
                values.append(reward)
        return torch.stack(frames).cpu().numpy(), np.stack(log_probs), np.stack(values)
