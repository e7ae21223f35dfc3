"""A double deep Q-network with a replay memory on the card and a target network; its player sees one frame at a time."""

import argparse
import copy
import random

import torch
import torch.nn.functional as F
from torch import nn


class Game:
    """A game that answers at random."""

    actions = 6

    def reset(self) -> torch.Tensor:
        self.left = random.randrange(20, 60)
        return torch.randint(0, 256, (84, 84), dtype=torch.uint8)

    def step(self, action: int) -> tuple[torch.Tensor, float, bool]:
        self.left -= 1
        frame = torch.randint(0, 256, (84, 84), dtype=torch.uint8)
        return frame, float(action == self.left % self.actions), self.left <= 0


class Replay:
    def __init__(self, capacity: int, device: str) -> None:
        self.frames = torch.zeros(capacity, 4, 84, 84, dtype=torch.uint8, device=device)
        self.actions = torch.zeros(capacity, dtype=torch.long, device=device)
        self.rewards = torch.zeros(capacity, device=device)
        self.done = torch.zeros(capacity, dtype=torch.bool, device=device)
        self.capacity = capacity
        self.count = 0

    def add(self, state: torch.Tensor, action: int, reward: float, done: bool) -> None:
        place = self.count % self.capacity
        self.frames[place] = state
        self.actions[place] = action
        self.rewards[place] = reward
        self.done[place] = done
        self.count += 1

    def sample(self, batch: int) -> tuple[torch.Tensor, ...]:
        index = torch.randint(0, min(self.count, self.capacity) - 1, (batch,), device=self.frames.device)
        return (
            self.frames[index], self.actions[index], self.rewards[index], self.frames[index + 1], self.done[index]
        )  # fmt: skip


class Dueling(nn.Module):
    def __init__(self, actions: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(),
            nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten(),
        )  # fmt: skip
        self.value = nn.Sequential(nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 1))
        self.advantage = nn.Sequential(nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, actions))

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        hidden = self.features(frames.float() / 255.0)
        advantage = self.advantage(hidden)
        return self.value(hidden) + advantage - advantage.mean(dim=1, keepdim=True)


def learn(online, target, optimizer, replay: Replay, batch: int) -> float:
    states, actions, rewards, following, done = replay.sample(batch)
    with torch.no_grad():
        best = online(following).argmax(dim=1, keepdim=True)
        expected = rewards + 0.99 * target(following).gather(1, best).squeeze(1) * (~done)
    chosen = online(states).gather(1, actions.unsqueeze(1)).squeeze(1)
    loss = F.smooth_l1_loss(chosen, expected)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(online.parameters(), 100)
    optimizer.step()
    return loss.item()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--capacity", type=int, default=20000)
    parser.add_argument("--frames", type=int, default=400)
    args = parser.parse_args()
    device = "cuda"
    game = Game()
    online = Dueling(game.actions).to(device)
    target = copy.deepcopy(online).eval()
    optimizer = torch.optim.AdamW(online.parameters(), lr=1e-4, amsgrad=True)
    replay = Replay(args.capacity, device)
    state = game.reset().to(device).repeat(4, 1, 1)
    losses = []
    for frame in range(args.frames):
        epsilon = max(0.1, 1.0 - frame / args.frames)
        if random.random() < epsilon:
            action = random.randrange(game.actions)
        else:
            with torch.no_grad():
                action = online(state.unsqueeze(0)).argmax(dim=1).item()
        seen, reward, done = game.step(action)
        replay.add(state, action, reward, done)
        state = torch.cat([state[1:], seen.to(device).unsqueeze(0)])
        if done:
            state = game.reset().to(device).repeat(4, 1, 1)
        if frame >= 100 and frame % 4 == 0:
            losses.append(learn(online, target, optimizer, replay, args.batch))
        if frame % 100 == 0:
            target.load_state_dict(online.state_dict())
    print(sum(losses) / len(losses))


if __name__ == "__main__":
    main()
