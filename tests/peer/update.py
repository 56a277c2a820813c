"""One gradient update of the twelve agents, computed with PyTorch's automatic differentiation.

Used by update_compare.py. Independent of the C code: networks, losses, targets, optimizer and the
schedule of the learning rate follow the XQC paper (Palenicek et al., ICLR 2026) and soft
actor-critic (Haarnoja et al., arXiv 1812.05905), as plainly as PyTorch allows. Both critics always
process all 2 B rows, whatever the architecture, and every gradient is PyTorch's.

Arrays are [ensemble, ...]; an actor is an ensemble of one. Flat parameter vectors have the layers
in the order of the description; within a layer, kernel or scale precede the bias."""

import math

import torch

BATCHNORM_EPS, BATCHNORM_MOMENTUM, LAYERNORM_EPS = 1e-3, 0.99, 1e-6
LOG_STD_MIN, LOG_STD_MAX = -10, 2
V_MIN, V_MAX = -5, 5
RATE_START, RATE_END = 3e-4, 3e-5
BETA1, BETA2, ADAM_EPS = 0.9, 0.999, 1e-8
TAU, POLICY_DELAY, TEMPERATURE, CRITICS = 0.005, 3, 0.01, 2


def discount(agent_steps):
    """The discount factor for episodes of this many agent steps."""
    return min(max((agent_steps / 5 - 1) / (agent_steps / 5), 0.95), 0.995)


class Network:
    """A norm, blocks of dense, norm and relu, and a dense head. norm: "bn", "ln" or "dense"
    (none)."""

    def __init__(self, norm, projected, inputs, width, depth, outputs):
        self.norm, self.projected, self.inputs, self.outputs = norm, projected, inputs, outputs
        self.layers, self.arrays, self.size, self.states = [], [], 0, 0  # arrays: offset, size
        if norm != "dense":
            self._add(norm, inputs)
        for _ in range(depth):
            self._add("hidden", width, inputs)
            if norm != "dense":
                self._add(norm, width)
            self._add("relu", width)
            inputs = width
        self._add("head", outputs, inputs)

    def _add(self, kind, width, inputs=None):
        shapes = {"relu": {}, "bn": {"scale": (width,), "bias": (width,)},
                  "ln": {"scale": (width,), "bias": (width,)},
                  "hidden": {"kernel": (inputs, width), "bias": (width,)},
                  "head": {"kernel": (inputs, width), "bias": (width,)}}[kind]
        if kind == "hidden" and self.norm == "bn":
            del shapes["bias"]
        layout = {}
        for name, shape in shapes.items():
            layout[name] = (self.size, shape)
            self.arrays.append((self.size, math.prod(shape)))
            self.size += math.prod(shape)
        self.layers.append((kind, layout, self.states, width))
        self.states += 2 * width if kind == "bn" else 0

    def parameters(self, w, layout):
        """Views into the flat vectors w [E, P]."""
        return {name: w[:, at:at + math.prod(shape)].unflatten(1, shape)
                for name, (at, shape) in layout.items()}

    def relu(self, x):
        return torch.relu(x)

    def forward(self, w, state, x, training):
        """Outputs [E, rows, K] for x [E, rows, inputs], and the running statistics after the
        pass."""
        moved = state.clone()
        for kind, layout, at, width in self.layers:
            p = self.parameters(w, layout)
            if kind == "relu":
                x = self.relu(x)
            elif kind in ("hidden", "head"):
                x = x @ p["kernel"]
                if "bias" in p:
                    x = x + p["bias"][:, None]
            elif kind == "ln":
                mean = x.mean(2, keepdim=True)
                var = ((x - mean) ** 2).mean(2, keepdim=True)
                x = (x - mean) / torch.sqrt(var + LAYERNORM_EPS)
                x = x * p["scale"][:, None] + p["bias"][:, None]
            else:
                mean, var = state[:, at:at + width], state[:, at + width:at + 2 * width]
                if training:
                    fresh = x.mean(1)
                    spread = ((x - fresh[:, None]) ** 2).mean(1)
                    moved[:, at:at + width] = mix(mean, fresh)
                    moved[:, at + width:at + 2 * width] = mix(var, spread)
                    mean, var = fresh, spread
                x = (x - mean[:, None]) / torch.sqrt(var + BATCHNORM_EPS)[:, None]
                x = x * p["scale"][:, None] + p["bias"][:, None]
        return x, moved

    def project(self, w):
        """Scales the columns of the hidden layers' [kernel; bias] and of the head's kernel to norm
        1."""
        if not self.projected:
            return
        for kind, layout, _, _ in self.layers:
            if kind not in ("hidden", "head"):
                continue
            p = self.parameters(w, layout)
            squares = (p["kernel"] ** 2).sum(1)
            if kind == "hidden" and "bias" in p:
                squares = squares + p["bias"] ** 2
                p["bias"] /= torch.sqrt(squares)
            p["kernel"] /= torch.sqrt(squares)[:, None]


def mix(running, batch):
    return BATCHNORM_MOMENTUM * running + (1 - BATCHNORM_MOMENTUM) * batch.detach()


class Adam:
    """rates: at the start and at the end; decay: a number for each parameter, or one for all."""

    def __init__(self, w, m, v, schedule, rates=(RATE_START, RATE_END), decay=0.0,
                 beta1=BETA1):
        self.w, self.m, self.v, self.schedule, self.steps = w, m, v, schedule, 0
        self.rates, self.decay, self.beta1 = rates, decay, beta1

    def step(self, g):
        self.m.mul_(self.beta1).add_((1 - self.beta1) * g)
        self.v.mul_(BETA2).add_((1 - BETA2) * g * g)
        self.move()

    def move(self):
        """Steps the parameters by the current moments."""
        start, end = self.rates
        rate = start - (start - end) * min(self.steps / self.schedule, 1)
        self.steps += 1
        m_hat = self.m / (1 - self.beta1 ** self.steps)
        v_hat = self.v / (1 - BETA2 ** self.steps)
        self.w -= rate * (m_hat / (torch.sqrt(v_hat) + ADAM_EPS) + self.decay * self.w)


def sample(heads, noise, squash=False):
    """tanh(mean + std noise) and its log density, for heads [rows, 2 A]. squash: a tanh maps the
    log-stds to their range; otherwise they are clipped to it."""
    mean, log_std = heads.chunk(2, dim=1)
    if squash:
        log_std = LOG_STD_MIN + (LOG_STD_MAX - LOG_STD_MIN) * (1 + torch.tanh(log_std)) / 2
    log_std = log_std.clamp(LOG_STD_MIN, LOG_STD_MAX)
    u = mean + torch.exp(log_std) * noise
    log_density = -0.5 * noise ** 2 - log_std - 0.5 * math.log(2 * math.pi)
    # log(1 - tanh(u)^2). PyTorch's softplus is the identity above 20, an error of up to 2e-9.
    softplus = torch.logaddexp(-2 * u, torch.zeros_like(u))
    log_slope = 2 * (math.log(2) - u - softplus)
    return torch.tanh(u), (log_density - log_slope).sum(1)


class Agent:
    """start: flat arrays [ensemble, ...] by name, which are copied: critic, target, actor and
    log_temperature; Adam's moments have _m and _v appended; running statistics are critic_state and
    actor_state."""

    critics, policy_delay, squash, actor_first = CRITICS, POLICY_DELAY, False, False
    target_mean, policy_mean, loss_factor = False, False, 0.5  # means over critics, not minima
    v_min, v_max = V_MIN, V_MAX

    def __init__(self, architecture, sizes, schedule, gamma, start, dtype):
        norm, loss = architecture.split("+")[0], architecture.split("+")[-1]
        projected = "+wn+" in architecture
        self.ce, self.actions, self.gamma, self.dtype = loss == "ce", sizes["actions"], gamma, dtype
        self.critic = Network(norm, projected, sizes["observations"] + sizes["actions"],
                              sizes["hidden"], sizes["depth"], sizes["atoms"] if self.ce else 1)
        self.actor = Network(norm, projected, sizes["observations"], sizes["actor_hidden"],
                             sizes["actor_depth"], 2 * sizes["actions"])
        self.support = torch.linspace(V_MIN, V_MAX, sizes["atoms"],
                                      dtype=torch.float64).to(dtype)
        self.now = {name: torch.tensor(value, dtype=dtype) for name, value in start.items()}
        self.updates = 0
        self.critic_adam = self._adam("critic", schedule)
        self.actor_adam = self._adam("actor", schedule)
        self.temperature_adam = self._adam("log_temperature", schedule)

    def _adam(self, name, schedule):
        return Adam(self.now[name], self.now[name + "_m"], self.now[name + "_v"], schedule)

    def values(self, outputs):
        """Q of outputs [E, rows, K], and their atoms' probabilities or themselves."""
        if not self.ce:
            return outputs.mean(2), outputs
        p = torch.softmax(outputs, 2)
        return (p * self.support).sum(2), p

    def targets(self, outputs, reward, mask, log_pi):
        """Targets [rows, K], and the fraction of atoms outside the support."""
        q, p = self.values(outputs)
        shift = (self.temperature() * log_pi)[:, None]
        reward, discounted = reward[:, None], (self.gamma * mask)[:, None]
        lower = torch.zeros(q.shape[1], dtype=torch.long)  # the first critic on a tie
        for e in range(1, len(q)):
            lower[q[e] < q.gather(0, lower[None])[0]] = e
        p = p.mean(0) if self.target_mean else p[lower, torch.arange(q.shape[1])]
        if not self.ce:
            return reward + discounted * (p - shift), 0.0
        moved = reward + discounted * (self.support - shift)
        clipped = ((moved < self.v_min) | (moved > self.v_max)).double().mean().item()
        position = (moved.clamp(self.v_min, self.v_max) - self.v_min) * (
            (p.shape[1] - 1) / (self.v_max - self.v_min))
        below = position.floor().clamp(0, p.shape[1] - 1)
        share = position - below
        above = (below + 1).clamp(max=p.shape[1] - 1)
        target = torch.zeros_like(p)
        target.scatter_add_(1, below.long(), p * (1 - share))
        target.scatter_add_(1, above.long(), p * share)
        return target, clipped

    def critic_loss(self, outputs, target):
        """The sum over the critics of the mean loss of outputs [E, rows, K]."""
        if self.ce:
            return -(target * torch.log_softmax(outputs, 2)).sum(2).mean(1).sum()
        return self.loss_factor * ((outputs - target) ** 2).mean((1, 2)).sum()

    def update(self, batch, next_noise, noise):
        """batch: s, a, next_s, reward, mask, as used in the loss. Returns the update's
        statistics."""
        results = self.update_actor(batch, noise) if self.actor_first else {}
        results |= self.update_critics(batch, next_noise)
        if not self.actor_first:
            results |= self.update_actor(batch, noise)
        self.updates += 1
        return results

    def tensors(self, *arrays):
        return (torch.tensor(array, dtype=self.dtype) for array in arrays)

    def temperature(self):
        return torch.exp(self.now["log_temperature"])[0, 0]

    def update_critics(self, batch, next_noise):
        """Steps 1 to 5."""
        s, a, next_s, reward, mask, noise = self.tensors(
            *(batch[name] for name in ("s", "a", "next_s", "reward", "mask")), next_noise)
        now, rows = self.now, len(s)

        # 1, 2: the next action; target critics in training mode on both halves.
        with torch.no_grad():
            heads, _ = self.actor.forward(now["actor"], now["actor_state"], next_s[None], False)
            next_a, next_log_pi = sample(heads[0], noise, self.squash)
            joint = torch.cat([torch.cat([s, a], 1), torch.cat([next_s, next_a], 1)])
            joint = joint.expand(self.critics, -1, -1)
            outputs, _ = self.critic.forward(now["target"], now["critic_state"], joint, True)
            # 3
            target, clipped = self.targets(outputs[:, rows:], reward, mask, next_log_pi)

        # 4: critics in training mode on both halves, the loss on the first.
        w = now["critic"].clone().requires_grad_()
        outputs, state = self.critic.forward(w, now["critic_state"], joint, True)
        outputs = outputs[:, :rows]
        loss = self.critic_loss(outputs, target)
        (g,) = torch.autograd.grad(loss, w)
        self.critic_adam.step(g)
        self.critic.project(now["critic"])
        now["critic_state"].copy_(state)

        # 5
        now["target"].copy_((1 - TAU) * now["target"] + TAU * now["critic"])
        return {"critic_loss": loss.item(), "clipped_fraction": clipped,
                "q_mean": self.values(outputs.detach())[0].mean().item()}

    def update_actor(self, batch, noise):
        """Steps 6 and 7."""
        s, noise = self.tensors(batch["s"], noise)
        now, temperature = self.now, self.temperature()

        # 6: the actor in training mode, the critics in evaluation mode.
        w = now["actor"].clone().requires_grad_()
        heads, state = self.actor.forward(w, now["actor_state"], s[None], True)
        now["actor_state"].copy_(state)
        if self.updates % self.policy_delay != 0:
            return {}
        a, log_pi = sample(heads[0], noise, self.squash)
        x = torch.cat([s, a], 1).expand(self.critics, -1, -1)
        outputs, _ = self.critic.forward(now["critic"], now["critic_state"], x, False)
        q, _ = self.values(outputs)
        q = q.mean(0) if self.policy_mean else q.min(0).values
        loss = (temperature * log_pi - q).mean()
        (g,) = torch.autograd.grad(loss, w)
        self.actor_adam.step(g)
        self.actor.project(now["actor"])

        # 7: the derivative of T (H - H*) in log T is T (H - H*).
        entropy = -log_pi.detach().mean()
        temperature_loss = temperature * (entropy + self.actions / 2)
        self.temperature_adam.step(temperature_loss)
        return {"actor_loss": loss.item(), "entropy": entropy.item(),
                "temperature_loss": temperature_loss.item()}
