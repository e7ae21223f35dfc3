import torch
import torch.nn.functional as F


class Learner:
    def __init__(self, q, target_q, gamma=0.99):
        self.q, self.target_q, self.gamma = q.cuda(), target_q.cuda(), gamma
        self.opt = torch.optim.Adam(q.parameters(), 2.5e-4)

    def learn(self, s, a, r, s2, done):
        with torch.no_grad():
            target = r + self.gamma * (1 - done) * self.target_q(s2).max(1).values
        q = self.q(s).gather(1, a[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(q, target)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return {"loss": loss.item(), "q": q.mean().item()}


def run(learner, replay, steps):
    losses, total_loss = [], 0.0
    for _ in range(steps):
        stats = learner.learn(*replay.sample(64))
        loss = stats["loss"]
        losses.append(loss)
        total_loss += loss
    return total_loss / steps, losses
