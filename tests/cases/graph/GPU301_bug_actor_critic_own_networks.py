import torch
import torch.nn.functional as F


class PPO:
    def __init__(self, actor, critic, clip=0.2):
        self.actor, self.critic, self.clip = actor.cuda(), critic.cuda(), clip
        self.opt_a = torch.optim.Adam(actor.parameters(), 3e-4)
        self.opt_c = torch.optim.Adam(critic.parameters(), 1e-3)

    def update(self, s, a, old_logp, ret, epochs=10):
        old_logp, ret = old_logp.detach(), ret.detach()
        with torch.no_grad():
            adv = ret - self.critic(s).squeeze(-1)
        for _ in range(epochs):
            dist = torch.distributions.Categorical(logits=self.actor(s))
            ratio = (dist.log_prob(a) - old_logp).exp()
            clipped = ratio.clamp(1 - self.clip, 1 + self.clip)
            actor_loss = -torch.min(ratio * adv, clipped * adv).mean()
            self.opt_a.zero_grad()
            actor_loss.backward(retain_graph=True)  # expect: GPU301
            self.opt_a.step()

            critic_loss = F.mse_loss(self.critic(s).squeeze(-1), ret)
            self.opt_c.zero_grad()
            critic_loss.backward()
            self.opt_c.step()
