"""SAC in one file, in PyTorch, after CleanRL: a run of a study. What KappaScope needs is marked [k].

python3 sac_torch.py STUDY plain|layernorm SEED [STEPS]"""

import random
import sys

import gymnasium
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import kappascope  # [k]

study, name, seed, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int((sys.argv[4:] or ["3000"])[0])
WIDTH, BATCH, GAMMA, TAU, ALPHA, LR, START, EVERY = 64, 128, 0.99, 0.005, 0.1, 1e-3, 500, 1000
torch.set_num_threads(1)
random.seed(seed), np.random.seed(seed), torch.manual_seed(seed)


def network(inputs, outputs):
    layers = []
    for width in (inputs, WIDTH):
        norm = [nn.LayerNorm(WIDTH)] if name == "layernorm" else []
        layers += [nn.Linear(width, WIDTH), *norm, nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(WIDTH, outputs))


class Critic(nn.Module):
    def __init__(self, observation, action):
        super().__init__()
        self.net = network(observation + action, 1)

    def forward(self, observation, action):
        return self.net(torch.cat([observation, action], 1)).squeeze(-1)


class Actor(nn.Module):
    def __init__(self, observation, action, scale):
        super().__init__()
        self.net, self.scale = network(observation, 2 * action), scale

    def forward(self, observation):
        """A random action with its log probability, and the mean action."""
        mean, log_std = self.net(observation).chunk(2, 1)
        normal = torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())
        x = normal.rsample()
        log_p = normal.log_prob(x) - 2 * (np.log(2) - x - F.softplus(-2 * x)) - np.log(self.scale)
        return self.scale * x.tanh(), log_p.sum(-1), self.scale * mean.tanh()


class Replay:
    def __init__(self):
        self.rows = []

    def sample(self, n):
        rows = zip(*(random.choice(self.rows) for _ in range(n)))
        return [torch.as_tensor(np.array(column), dtype=torch.float32) for column in rows]


env, eval_env, replay = gymnasium.make("Pendulum-v1"), gymnasium.make("Pendulum-v1"), Replay()
sizes = env.observation_space.shape[0], env.action_space.shape[0]
actor, critics, targets = (
    Actor(*sizes, float(env.action_space.high[0])),
    [Critic(*sizes), Critic(*sizes)],
    [Critic(*sizes), Critic(*sizes)],
)
for q, target in zip(critics, targets):
    target.load_state_dict(q.state_dict())
critic_optimizer = torch.optim.Adam([p for q in critics for p in q.parameters()], LR)
actor_optimizer = torch.optim.Adam(actor.parameters(), LR)


def target_values(reward, following, end):
    with torch.no_grad():
        action, log_p, _ = actor(following)
        value = torch.min(*(q(following, action) for q in targets)) - ALPHA * log_p
        return reward + GAMMA * (1 - end) * value


def update(observation, action, reward, following, end):
    y = target_values(reward, following, end)
    critic_optimizer.zero_grad()
    sum(F.mse_loss(q(observation, action), y) for q in critics).backward()
    critic_optimizer.step()
    action, log_p, _ = actor(observation)
    actor_optimizer.zero_grad()
    (ALPHA * log_p - torch.min(*(q(observation, action) for q in critics))).mean().backward()
    actor_optimizer.step()
    for q, target in zip(critics, targets):
        for p, p_target in zip(q.parameters(), target.parameters()):
            p_target.data.lerp_(p.data, TAU)


def mean_return(episodes=5):
    total = 0.0
    for episode in range(episodes):
        observation, done = eval_env.reset(seed=1000 + episode)[0], False
        while not done:
            with torch.no_grad():
                action = actor(torch.as_tensor(observation)[None])[2][0]
            observation, reward, end, cut, _ = eval_env.step(action.numpy())
            total, done = total + float(reward), end or cut
    return total / episodes


# [k] Of which data: 8 minibatches of 256 rows, drawn once. What is saved: critics, inputs and targets.
def draw():
    return [column.reshape(8, 256, *column.shape[1:]) for column in replay.sample(8 * 256)]


def save(path, step, minibatches):
    observation, action, *others = minibatches
    rows = [column.flatten(0, 1) for column in others]  # as the training has them
    kappascope.save(
        path,
        critics=critics,
        inputs=(observation, action),
        targets=target_values(*rows).reshape(8, 256),
        loss=F.mse_loss,
        optimizer=critic_optimizer,
    )


run = kappascope.Run(
    study,
    env="Pendulum-v1",
    name=name,
    seed=seed,
    every=EVERY,
    save=save,
    draw=draw,
    attributes={"gamma": GAMMA},
)
# [k]

observation, _ = env.reset(seed=seed)
for step in range(1, steps + 1):
    if step <= START:
        action = np.random.uniform(env.action_space.low, env.action_space.high).astype(np.float32)
    else:
        with torch.no_grad():
            action = actor(torch.as_tensor(observation)[None])[0][0].numpy()
    following, reward, end, cut, _ = env.step(action)
    replay.rows.append((observation, action, reward, following, end))
    observation = env.reset()[0] if end or cut else following
    if step > START:
        update(*replay.sample(BATCH))
        run(step)  # [k]
    if step % EVERY == 0:
        value = mean_return()
        run.evaluated(step, value)  # [k]
        print(f"{name}, seed {seed}, step {step}: return {value:.0f}")
