"""PyTorch's gradient updates: python3 update_torch.py FOLDER ARCHITECTURE f32|f64 WORKERS

A contestant (contest.py). A method is a cycle of updates, with the minibatches as tensors and its own
noise: "loop" has one critic after the other; "workers" is the same with the critics distributed to
WORKERS threads; "batched" computes both at once, in batched products. Every thread computes with
OMP_NUM_THREADS threads. A method's name with "-check" appended makes the recorded updates (agents.py),
with the recorded noise.

Adam is written out, array by array: with PyTorch 1.13 this takes two thirds of the time of
torch.optim.Adam; its option foreach=True is slower still, and fused=True is only for GPUs."""

import math
import sys
from concurrent.futures import ThreadPoolExecutor

import torch
from torch.nn import functional

import agents
from agents import LOG_STD_MAX, LOG_STD_MIN, Problem
from contest import serve
from critic_torch import about, forward, loss
from critics import BATCHNORM_EPS, LAYERNORM_EPS, V_MAX, V_MIN

ALL, NONE = slice(None), slice(0)


class Norms:
    """The norms of one pass, for one network or an ensemble. statistics: the running averages, which
    training mode updates; without them the minibatch's are used. PyTorch keeps the unbiased variance:
    rows/(rows - 1) times the biased one."""

    def __init__(self, rows, statistics=(), training=True):
        self.biased, self.training = (rows - 1) / rows, training
        self.statistics = iter(statistics)

    def __call__(self, kind, x, w):
        single = x.dim() == 2
        if kind == "batchnorm":
            y = self.batchnorm(x if single else x.transpose(0, 1).flatten(1), w)
            return y if single else y.unflatten(1, x.shape[::2]).transpose(0, 1)
        if single:
            return functional.layer_norm(x, x.shape[1:], w["scale"], w["bias"], LAYERNORM_EPS)
        y = functional.layer_norm(x, x.shape[2:], None, None, LAYERNORM_EPS)
        return torch.addcmul(w["bias"].unsqueeze(1), y, w["scale"].unsqueeze(1))

    def batchnorm(self, x, w):
        mean, var = next(self.statistics, None), next(self.statistics, None)
        if mean is not None:
            mean, var = mean.view(-1), var.view(-1)
            var = var if self.training else self.biased * var
        return functional.batch_norm(x, mean, var, w["scale"].flatten(), w["bias"].flatten(),
                                     self.training, 1 - agents.BATCHNORM_MOMENTUM, BATCHNORM_EPS)


class Trained:
    """A network or an ensemble, with its optimizer and targets. start: lists of arrays; rows: the number
    of rows of a pass in training mode."""

    def __init__(self, network, start, steps, schedule, rows):
        self.network, self.steps, self.schedule, self.rows = network, steps, schedule, rows
        self.w = [torch.tensor(a, requires_grad=True) for a in start["w"]]
        self.m, self.v, self.state, self.target = (
            [torch.tensor(a) for a in start.get(key, [])] for key in ("m", "v", "state", "target"))
        for var in self.state[1::2]:
            var *= rows / (rows - 1)

    def forward(self, w, x, rows, norms):
        return forward(self.network, w, x, rows, norms, torch.relu_)

    def train(self, x, rows):
        """A pass in training mode, which updates the running statistics."""
        return self.forward(self.w, x, rows, Norms(self.rows, self.state))

    def evaluate(self, x):
        """A pass in evaluation mode, with constant parameters."""
        w = [a.detach() for a in self.w]
        return self.forward(w, x, ALL, Norms(self.rows, self.state, training=False))

    @torch.no_grad()
    def step(self, gradient):
        """Adam, projection, Polyak average of the targets."""
        falls = (agents.RATE_START - agents.RATE_END) * min(self.steps / self.schedule, 1)
        self.steps += 1
        correction = math.sqrt(1 - agents.BETA2 ** self.steps)
        rate = (agents.RATE_START - falls) * correction / (1 - agents.BETA1 ** self.steps)
        for w, m, v, g in zip(self.w, self.m, self.v, gradient):
            m.mul_(agents.BETA1).add_(g, alpha=1 - agents.BETA1)
            v.mul_(agents.BETA2).addcmul_(g, g, value=1 - agents.BETA2)
            w.addcdiv_(m, v.sqrt().add_(agents.ADAM_EPS * correction), value=-rate)
        if self.network.projected:
            self.project()
        for target, w in zip(self.target, self.w):
            target.mul_(1 - agents.TAU).add_(w, alpha=agents.TAU)

    def project(self):
        *hidden, head = [w for kind, w in self.network.by_layer(self.w) if kind == "dense"]
        head["kernel"] /= head["kernel"].square().sum(-2, keepdim=True).sqrt()
        for w in hidden:
            squares = w["kernel"].square().sum(-2)
            if "bias" in w:
                squares += w["bias"].square()
                w["bias"] /= squares.sqrt()
            w["kernel"] /= squares.sqrt().unsqueeze(-2)

    def biased_state(self):
        """The running statistics in KappaScope's form (biased variances)."""
        factors = [1, (self.rows - 1) / self.rows] * len(self.state)
        return [x * factor for x, factor in zip(self.state, factors)]


def sample(heads, noise):
    """tanh(mean + std noise) and the logarithm of its density."""
    mean, log_std = heads.chunk(2, dim=1)
    log_std = log_std.clamp(LOG_STD_MIN, LOG_STD_MAX)
    u = torch.addcmul(mean, log_std.exp(), noise)
    # log(1 - tanh(u)^2); above 40 softplus is the identity up to rounding
    log_slope = 2 * (math.log(2) - u - functional.softplus(-2 * u, threshold=40))
    log_density = -0.5 * noise ** 2 - log_std - 0.5 * math.log(2 * math.pi)
    return torch.tanh(u), (log_density - log_slope).sum(1)


class Agent:
    """critics: a Trained per critic, or one for all."""

    def __init__(self, problem, batched, workers):
        self.p = p = problem
        members = [p.critics] if batched else \
            [{key: [a[e] for a in x] for key, x in p.critics.items()}
             for e in range(agents.CRITICS)]
        rows = 2 * p.rows if p.critic.joint else p.rows
        self.critics = [Trained(p.critic, x, p.critic_steps, p.schedule, rows) for x in members]
        self.actor = Trained(p.actor, p.policy, p.actor_steps, p.schedule, p.rows)
        self.batched, self.done = batched, 0
        self.map = ThreadPoolExecutor(workers).map if workers > 1 else map
        dtype = self.actor.w[0].dtype
        self.support = torch.linspace(V_MIN, V_MAX, p.critic.outputs, dtype=torch.float64).to(dtype)
        self.minibatches = [{key: torch.tensor(a) for key, a in b.items()} for b in p.minibatches]

    def each(self, f, *lists):
        return list(self.map(f, self.critics, *lists))

    def joined(self, s, a):
        """The critics' input: observation and action joined."""
        x = torch.cat((s, a), 1)
        return x.expand(agents.CRITICS, -1, -1) if self.batched else x

    def values(self, outputs):
        """Q [E, rows] of outputs [..., rows, K], and the atoms' probabilities, if any."""
        outputs = outputs.view(-1, *outputs.shape[-2:])
        if self.p.critic.loss == "mse":
            return outputs[..., 0], None
        p = torch.softmax(outputs, 2)
        return p @ self.support, p

    def temperature(self):
        return self.actor.w[-1].detach().exp()

    @torch.no_grad()
    def targets(self, outputs, batch, log_pi):
        q, p = self.values(torch.cat([x.view(-1, *x.shape[-2:]) for x in outputs]))
        discount, entropy = agents.GAMMA * batch["mask"], self.temperature() * log_pi
        if p is None:
            return (batch["reward"] + discount * (q.amin(0) - entropy)).unsqueeze(1)
        p = torch.where((q[1] < q[0]).unsqueeze(1), p[1], p[0])  # the first critic on a tie
        offset = batch["reward"] - discount * entropy
        position = torch.addcmul(offset.unsqueeze(1), discount.unsqueeze(1), self.support)
        atoms = p.shape[1]
        position = (position.clamp_(V_MIN, V_MAX) - V_MIN) * ((atoms - 1) / (V_MAX - V_MIN))
        below = position.floor().clamp_(0, atoms - 2)
        share = p * (position - below)
        below = below.long()
        return torch.zeros_like(p).scatter_add_(1, below, p - share) \
            .scatter_add_(1, below + 1, share)

    def step_critics(self, batch, noise):
        with torch.no_grad():
            next_a, log_pi = sample(self.actor.evaluate(batch["next_s"]), noise)
        x, next_x = self.joined(batch["s"], batch["a"]), self.joined(batch["next_s"], next_a)
        last = ALL
        if self.p.critic.joint:
            x = next_x = torch.cat((x, next_x), -2)
            last = slice(self.p.rows, None)

        @torch.no_grad()  # set here, as it is per thread
        def target_outputs(c):
            return c.forward(c.target, next_x, last, Norms(c.rows))

        def step(c):
            outputs = c.train(x, slice(self.p.rows))
            total = loss(self.p.critic, outputs, target)
            c.step(torch.autograd.grad(total, c.w))
            return total.detach()

        target = self.targets(self.each(target_outputs), batch, log_pi)
        return sum(self.each(step))

    def step_actor(self, batch, noise):
        """The critics' part of the gradient is taken with respect to a detached action, so that threads
        can share the work. Returns the losses of actor and temperature."""
        rows, temperature = self.p.rows, self.temperature()
        a, log_pi = sample(self.actor.train(batch["s"], ALL), noise)
        action = a.detach().requires_grad_()
        q = self.each(lambda c: self.values(c.evaluate(self.joined(batch["s"], action)))[0])
        values = torch.cat(q).detach()
        second = values[1] < values[0]
        q_bar = torch.stack((~second, second)).to(values.dtype) / -rows
        a_bar = sum(self.each(lambda c, q, q_bar: torch.autograd.grad(q, action, q_bar)[0], q,
                              q_bar.chunk(len(q))))
        g = torch.autograd.grad((a, log_pi), self.actor.w[:-1],
                                (a_bar, (temperature / rows).expand(rows)))
        log_pi = log_pi.detach().mean()
        temperature_loss = temperature * (self.p.actions / 2 - log_pi)
        self.actor.step([*g, temperature_loss])
        return temperature * log_pi - values.amin(0).mean(), temperature_loss

    def update(self, batch, next_noise, noise):
        critic_loss, actor_losses = self.step_critics(batch, next_noise), (math.nan, math.nan)
        if self.done % agents.CYCLE == 0:
            actor_losses = self.step_actor(batch, noise)
        elif self.p.actor.joint:
            with torch.no_grad():
                self.actor.train(batch["s"], NONE)
        self.done += 1
        return critic_loss, *actor_losses

    def cycle(self):
        for _ in range(agents.CYCLE):
            batch = self.minibatches[self.done % agents.UPDATES]
            self.update(batch, torch.randn_like(batch["noise"]), torch.randn_like(batch["noise"]))


def check(problem, batched, workers):
    agent = Agent(problem, batched, workers)
    losses = [[float(x) for x in agent.update(b, b["next_noise"], b["noise"])]
              for b in agent.minibatches]

    def stack(arrays):
        return arrays[0] if batched else [torch.stack(x) for x in zip(*arrays)]

    critics = {"w": stack([c.w for c in agent.critics]),
               "target": stack([c.target for c in agent.critics]),
               "state": stack([c.biased_state() for c in agent.critics])}
    return agents.answer(*({key: [a.detach().numpy() for a in x] for key, x in tree.items()}
                           for tree in (critics, {"w": agent.actor.w,
                                                  "state": agent.actor.biased_state()})), losses)


def main():
    folder, name, precision, workers = sys.argv[1:]
    problem, workers, methods = Problem(folder, name, precision), int(workers), {}
    for method, how in ("loop", (False, 1)), ("workers", (False, workers)), ("batched", (True, 1)):
        methods[method] = Agent(problem, *how).cycle
        methods[method + "-check"] = lambda how=how: check(problem, *how)
    serve(about(), methods, lambda result: result)


main()
