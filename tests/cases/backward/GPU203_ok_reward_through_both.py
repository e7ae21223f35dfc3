import torch


def train(actor, critic, loader):
    """DDPG's actor step goes through the critic into the actor on purpose."""
    opt_a = torch.optim.Adam(actor.parameters(), 1e-4)
    opt_c = torch.optim.Adam(critic.parameters(), 1e-3)
    for s, a, y in loader:
        critic_loss = (critic(s.cuda(), a.cuda()) - y.cuda()).pow(2).mean()
        opt_c.zero_grad()
        critic_loss.backward()
        opt_c.step()
        actor_loss = -critic(s.cuda(), actor(s.cuda())).mean()
        opt_a.zero_grad()
        actor_loss.backward()
        opt_a.step()
