"""The rows of the rollout are what the update computes with, on the GPU, right after."""

import torch
import torch.nn.functional as F


class Learner:
    def __init__(self, policy: torch.nn.Module, envs, horizon=128):
        self.policy, self.envs, self.horizon = policy.cuda(), envs, horizon
        self.optimizer = torch.optim.Adam(self.policy.parameters(), 2.5e-4)

    def collect(self):
        frames, rows, rewards = [], [], []
        seen = self.envs.reset()
        with torch.no_grad():
            for _ in range(self.horizon):
                pixels = torch.as_tensor(seen, device="cuda", dtype=torch.float32) / 255
                logits = self.policy(pixels)
                action = torch.distributions.Categorical(logits=logits).sample()
                frames.append(pixels)
                rows.append(logits.log_softmax(-1))
                seen, reward, done, _ = self.envs.step(action.cpu().numpy())
                rewards.append(torch.as_tensor(reward, device="cuda"))
        return torch.cat(frames), torch.cat(rows), torch.cat(rewards)

    def update(self):
        frames, old, rewards = self.collect()
        new = self.policy(frames).log_softmax(-1)
        loss = F.kl_div(new, old, log_target=True) - (new.max(1)[0] * rewards).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
