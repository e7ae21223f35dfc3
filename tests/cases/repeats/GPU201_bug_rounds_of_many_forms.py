"""How often a forward runs, and on how much: one picture, a few, a retry, a phase, an environment's states."""

import gym
import numpy as np
import torch
import torch.nn as nn
from PIL import Image
from torch.autograd import Variable
from torchvision import models, transforms
from tqdm import tqdm

TRANSFORM = transforms.ToTensor()
net = models.resnet50(pretrained=True).cuda().eval()


def by_none(path):
    picture = TRANSFORM(Image.open(path))
    return net(picture[None].cuda()).argmax(1).item()  # expect: GPU201


def by_dots(path):
    picture = TRANSFORM(Image.open(path)).cuda()
    return net(picture[None, ...]).argmax(1).item()  # maybe: GPU201


def by_newaxis(path):
    picture = np.asarray(Image.open(path))[np.newaxis]
    return net(torch.from_numpy(picture).cuda()).argmax(1).item()  # maybe: GPU201


def by_numpy(path):
    picture = np.expand_dims(np.asarray(Image.open(path)), 0)
    batch = Variable(torch.FloatTensor(picture)).cuda()
    return net(batch).data.cpu().numpy()  # maybe: GPU201


def by_list(path):
    batch = torch.tensor([np.asarray(Image.open(path))])
    batch = batch.float().cuda()
    return net(batch).tolist()  # maybe: GPU201


def by_keyword(path):
    picture = torch.unsqueeze(TRANSFORM(Image.open(path)), dim=0)
    picture = picture.to("cuda")
    return net(x=picture).cpu().detach().numpy()  # maybe: GPU201


def few():
    answers = []
    for path in ("a.png", "b.png"):
        answers.append(net(TRANSFORM(Image.open(path)).unsqueeze(0).cuda()).argmax().item())  # maybe: GPU201
    for number in range(4):
        answers.append(net(torch.randn(8, 3, 224, 224).cuda()).argmax().item())  # maybe: GPU201
    for value in tqdm(np.linspace(0, 1, 5)):
        answers.append(net(torch.randn(8, 3, 224, 224).cuda() * value).argmax().item())  # maybe: GPU201
    for number, path in enumerate(["a.png", "b.png", "c.png"]):
        answers.append(net(TRANSFORM(Image.open(path))[None].cuda()).argmax().item())  # maybe: GPU201
    return answers


def once(loader):
    for x, y in loader:
        out = net(x.cuda())  # note: GPU201
        print(out.argmax(1).tolist())
        break
    for x, y in loader:
        return net(x.cuda()).argmax(1).tolist()  # maybe: GPU201


def retried(loader, attempts=5):
    for x, y in loader:
        for attempt in range(attempts):
            try:
                out = net(x.cuda())  # maybe: GPU201  # low: GPU505
                print(out.sum().item())
            except RuntimeError as error:
                print(error)
                torch.cuda.empty_cache()  # maybe: GPU402
                continue
            else:
                break
    while True:
        try:
            print(net(x.cuda()).sum().item())  # maybe: GPU201  # low: GPU505
        except RuntimeError:
            torch.cuda.empty_cache()  # maybe: GPU402
            continue
        break


class Policy(nn.Module):
    def __init__(self, states, actions):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(states, 64), nn.Tanh(), nn.Linear(64, actions))

    def forward(self, x):
        return self.body(x)

    def act(self, state):
        state = torch.from_numpy(state).float().unsqueeze(0).cuda()
        return self(state).argmax(1).item()  # note: GPU201


def play(name, policy, episodes):
    env = gym.make(name)
    policy.cuda().eval()
    returns = []
    for _ in range(episodes):
        state, done, total = env.reset(), False, 0.0
        while not done:
            q = policy(torch.tensor(state).float().cuda()[None])  # note: GPU201
            action = q.max(1)[1].item()
            state, reward, done, _ = env.step(action)
            total += reward
        state = env.reset()
        for _ in range(200):
            state, reward, done, _ = env.step(policy.act(state))
            if done:
                break
        returns.append(total)
    return np.mean(returns)


class Agent:
    def __init__(self, policy, env):
        self.policy, self.env = policy.cuda(), env
        self.optimizer = torch.optim.Adam(policy.parameters())

    def rollout(self, steps):
        states, log_probs, rewards = [], [], []
        state = self.env.reset()
        for _ in range(steps):
            logits = self.policy(torch.as_tensor(state).float().cuda())
            dist = torch.distributions.Categorical(logits=logits)
            action = dist.sample()
            log_probs.append(dist.log_prob(action))
            state, reward, done, _ = self.env.step(action.item())
            states.append(state)
            rewards.append(reward)
            if done:
                state = self.env.reset()
        return states, log_probs, rewards

    def update(self, steps):
        _, log_probs, rewards = self.rollout(steps)
        loss = -(torch.stack(log_probs) * torch.tensor(rewards).cuda()).sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def evaluate(self):
        state, done = self.env.reset(), False
        while not done:
            action = self.policy(torch.as_tensor(state).float().cuda()).argmax().item()  # note: GPU201
            state, _, done, _ = self.env.step(action)


def phases(model, loaders, optimizer, criterion, scheduler):
    for epoch in range(20):
        for phase in ["train", "val"]:
            if phase == "train":
                model.train()
            else:
                model.eval()
            running = 0.0
            for x, y in loaders[phase]:
                optimizer.zero_grad()
                out = model(x.cuda())  # maybe: GPU201
                loss = criterion(out, y.cuda())
                if phase == "train":
                    loss.backward()
                    optimizer.step()
                running += loss.item() * x.size(0)
            print(phase, running)
        torch.cuda.empty_cache()
        for mode, loader in loaders.items():
            is_train = mode == "train"
            model.train(is_train)
            for x, y in loader:
                loss = criterion(model(x.cuda()), y.cuda())
                if is_train:
                    loss.backward()
        scheduler.step()
        torch.save(model.state_dict(), f"{epoch}.pt")


def offload(model, loader, low_memory):
    for x in loader:
        if low_memory:
            for part in model.children():
                part.cuda()
                x = part(x.cuda())  # maybe: GPU201
                part.to("cpu")
                torch.cuda.empty_cache()  # maybe: GPU501
        else:
            x = model(x)  # expect: GPU201
        print(x.sum().item())


if __name__ == "__main__":
    for one in (by_none, by_dots, by_newaxis, by_numpy, by_list, by_keyword):
        print(one("a.png"))
    few()
    data = torch.utils.data.DataLoader([0] * 1000)
    once(data)
    retried(data)
    print(play("CartPole-v1", Policy(4, 2), 10))
    agent = Agent(Policy(4, 2), gym.make("CartPole-v1"))
    for _ in range(1000):
        agent.update(200)
    agent.evaluate()
    phases(net, {"train": data, "val": data}, None, nn.CrossEntropyLoss(), None)
    offload(net, data, True)
