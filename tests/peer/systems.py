"""Gradient updates of systems (configs/systems) against PyTorch's: systems.py FOLDER FILE.system...

FOLDER was written by tests/peer/update.c in float64. The agents are those of update.py, with the
networks of the systems' descriptions (layers_torch.py) and the settings of their files; no gradient
is computed by hand. Prints the deviations after 1, 10 and 100 updates, as update_compare.py defines
them; exit status 1 if one exceeds the bound."""

import configparser
import math
import os
import sys

import torch

import layers_torch
import update as peer
import update_compare as compare

BOUND = 1e-12
OPTIMIST = [name + suffix for name in ("optimist", "optimism", "price") for suffix in ("", "_m", "_v")]
# Of BRO's optimistic actor, as in its published code: the factor of the standard deviations, the
# divergence per action that is aimed at, the rate and beta1 of the dual variables, their range.
STD_FACTOR, KL_TARGET, DUAL_RATE, DUAL_BETA1, DUAL_MIN, DUAL_MAX = 0.75, 0.05, 3e-5, 0.5, -10, 7.5
DEFAULTS = {"critic_lr": peer.RATE_START, "actor_lr": peer.RATE_START, "lr_end": peer.RATE_END,
            "critics": peer.CRITICS, "policy_delay": peer.POLICY_DELAY, "weight_decay": 0,
            "decay": "none", "update_order": "critics-first",
            "temperature": peer.TEMPERATURE, "temperature_beta1": peer.BETA1,
            "temperature_decay": 0, "target_value": "min", "policy_value": "min"}


def dense(net, x, words):
    net.dense[net.number] = words
    return layers_torch.dense(net, x, words)


def batchnorm(net, x, words):
    """With the batch's statistics in training, which move the running ones; else with these."""
    d = x.shape[1]
    scale, bias = net.parameter("scale", (d,)), net.parameter("bias", (d,))
    mean, var = net.running_statistics(d)
    if net.training:
        fresh = x.mean(0)
        spread = ((x - fresh) ** 2).mean(0)
        mean.copy_(peer.mix(mean, fresh))
        var.copy_(peer.mix(var, spread))
        mean, var = fresh, spread
    return (x - mean) / torch.sqrt(var + peer.BATCHNORM_EPS) * scale + bias


layers_torch.LAYERS |= {"dense": dense, "batchnorm": batchnorm}


class Network(layers_torch.Critic):
    """A network by its description, with the interface of update.Network."""

    def __init__(self, text, inputs):
        super().__init__(text, 0)
        self.policy = self.lines[-1]
        self.lines[-1] = ["loss"]
        self.offset, self.state_offset, self.dense = {}, {}, {}
        self.size = self.states = 0
        self.flat = None
        self.one(torch.zeros(2, inputs, dtype=torch.float64), None, None, True)
        self.arrays = [(at, math.prod(shape)) for at, shape in self.offset.values()]
        self.layers = [("bn", None, at, width) for at, width in self.state_offset.values()]

    def parameter(self, name, shape, mean=0.0, spread=0.0):
        key = f"{self.number:02d}_{self.kind}/{name}"
        if self.flat is None:
            self.offset[key] = self.size, shape
            self.size += math.prod(shape)
            return torch.ones(shape, dtype=torch.float64)
        at, shape = self.offset[key]
        return self.flat[at:at + math.prod(shape)].reshape(shape)

    def running_statistics(self, d):
        if self.flat is None:
            self.state_offset[self.number] = self.states, d
            self.states += 2 * d
            return torch.zeros(d, dtype=torch.float64), torch.ones(d, dtype=torch.float64)
        at, _ = self.state_offset[self.number]
        return self.running_flat[at:at + d], self.running_flat[at + d:at + 2 * d]

    def one(self, x, flat, running, training):
        self.flat, self.running_flat, self.training = flat, running, training
        return self.outputs(x)

    def forward(self, w, state, x, training):
        moved = state.clone()
        return torch.stack([self.one(x[e], w[e], moved[e], training)
                            for e in range(len(w))]), moved

    def project(self, w):
        for number, words in self.dense.items():
            project = layers_torch.options(words).get("project")
            if project is None:
                continue
            names = ["kernel"] + ["bias"] * (project == "unit" and "bias=no" not in words)
            parts = [self.view(w, f"{number:02d}_dense/{name}") for name in names]
            norm = torch.sqrt(sum((p ** 2).sum(1, keepdim=True) for p in parts))
            for p in parts:
                p /= norm.clamp(min=1e-8)

    def view(self, w, key):
        """[E, rows, columns], sharing memory with w [E, P]."""
        at, shape = self.offset[key]
        return w[:, at:at + math.prod(shape)].unflatten(1, shape if len(shape) == 2 else (1, -1))

    def decayed(self, which):
        """1 for the parameters that decay, else 0."""
        mask, head = torch.zeros(self.size, dtype=torch.float64), f"{max(self.dense):02d}_dense/"
        for key, (at, shape) in self.offset.items():
            if which == "all" or ("norms" in which and "_batchnorm/" in key) or (
                    "heads" in which and key.startswith(head)):
                mask[at:at + math.prod(shape)] = 1
        return mask


class System(peer.Agent):
    def __init__(self, path, sizes, schedule, gamma, start):
        file = configparser.ConfigParser()
        file.read(path)
        s = DEFAULTS | dict(file["train"])
        folder = os.path.dirname(path)
        texts = {name: read_text(os.path.join(folder, file["system"][name]))
                 for name in ("critic", "actor")}
        self.actions, self.gamma, self.dtype = sizes["actions"], gamma, torch.float64
        self.critic = Network(texts["critic"], sizes["observations"] + sizes["actions"])
        self.actor = Network(texts["actor"].replace("dense 2A", f"dense {2 * self.actions}"),
                             sizes["observations"])
        self.ce = "ce" in self.critic.policy
        loss = layers_torch.options(self.critic.policy)
        self.v_min, self.v_max = float(loss.get("min", 0)), float(loss.get("max", 0))
        self.kappa = float(loss.get("kappa", 1)) if "quantile" in self.critic.policy else None
        self.squash = "log-std=squash" in self.actor.policy
        self.support = torch.linspace(self.v_min, self.v_max, sizes["atoms"], dtype=torch.float64)
        self.critics, self.policy_delay = int(s["critics"]), int(s["policy_delay"])
        self.actor_first = s["update_order"] == "actor-first"
        self.target_mean, self.policy_mean = (s[k] == "mean" for k in ("target_value",
                                                                       "policy_value"))
        self.loss_factor = 0.5 * float(loss.get("weight", 1))
        self.now = {name: torch.tensor(value) for name, value in start.items()}
        self.updates = 0
        self.optimist = None
        end, decay = float(s["lr_end"]), float(s["weight_decay"])

        def adam(name, rate, decays, beta1=peer.BETA1):
            return peer.Adam(self.now[name], self.now[name + "_m"], self.now[name + "_v"], schedule,
                             (float(s[rate]), end), decays, beta1)

        self.critic_adam = adam("critic", "critic_lr", decay * self.critic.decayed(s["decay"]))
        self.actor_adam = adam("actor", "actor_lr", decay * self.actor.decayed(s["decay"]))
        self.temperature_adam = adam("log_temperature", "actor_lr", float(s["temperature_decay"]),
                                     float(s["temperature_beta1"]))

        if "optimist" in file["system"]:
            text = read_text(os.path.join(folder, file["system"]["optimist"]))
            self.optimist = Network(text.replace("dense A", f"dense {self.actions}"),
                                    sizes["observations"] + self.actions)
            self.optimist_adam = adam("optimist", "actor_lr",
                                      decay * self.optimist.decayed(s["decay"]))
            self.dual_adams = {name: peer.Adam(self.now[name], self.now[name + "_m"],
                                               self.now[name + "_v"], schedule,
                                               (DUAL_RATE, DUAL_RATE), 0.0, DUAL_BETA1)
                               for name in ("optimism", "price")}

    def update(self, batch, next_noise, noise):
        results = super().update(batch, next_noise, noise)
        if self.optimist and "actor_loss" in results:
            self.update_optimist(*self.tensors(batch["s"], batch["optimist_noise"]))
        return results

    def update_optimist(self, s, noise):
        """The optimistic actor's step, after the actor's, and those of optimism and price."""
        now = self.now
        heads, _ = self.actor.forward(now["actor"], now["actor_state"], s[None], False)
        mean, log_std = heads[0].chunk(2, dim=1)
        low, high = peer.LOG_STD_MIN, peer.LOG_STD_MAX
        std = torch.exp(low + (high - low) * (1 + torch.tanh(log_std)) / 2)
        dual = {name: now[name].clone().requires_grad_() for name in self.dual_adams}
        value = {name: torch.exp(DUAL_MIN + (DUAL_MAX - DUAL_MIN) / 2 * (1 + torch.tanh(x)))[0, 0]
                 for name, x in dual.items()}
        w = now["optimist"].clone().requires_grad_()
        shift, _ = self.optimist.forward(w, torch.zeros(1, 0), torch.cat([s, mean], 1)[None], True)
        shifted = torch.distributions.Normal(mean + shift[0], std)
        a = torch.tanh(shifted.mean + STD_FACTOR * std * noise)
        x = torch.cat([s, a], 1).expand(self.critics, -1, -1)
        f, _ = self.critic.forward(now["critic"], now["critic_state"], x, False)
        bound = ((f[0] + f[1]) / 2 + value["optimism"].detach() * (f[0] - f[1]).abs() / 2).mean()
        kl = torch.distributions.kl_divergence(shifted, torch.distributions.Normal(mean, std)
                                               ).sum(1).mean()
        (g,) = torch.autograd.grad(value["price"].detach() * kl - bound, w)
        excess = kl.detach() / self.actions - KL_TARGET
        steps = torch.autograd.grad(excess * (value["optimism"] - value["price"]),
                                    [dual["optimism"], dual["price"]])
        for name, step in zip(("optimism", "price"), steps):
            self.dual_adams[name].step(step)
        self.optimist_adam.step(g)
        self.optimist.project(now["optimist"])

    def critic_loss(self, outputs, target):
        if self.kappa is None:
            return super().critic_loss(outputs, target)
        e, n = target[None, :, None] - outputs[..., None], outputs.shape[2]
        q = ((torch.arange(n, dtype=torch.float64) + 0.5) / n)[:, None]
        share = (q - (e.detach() < 0).double()).abs()
        size = e.abs()
        huber = torch.where(size <= self.kappa, e ** 2 / 2, self.kappa * (size - self.kappa / 2))
        return (share * huber).mean(3).sum(2).mean(1).sum()


def read_text(path):
    with open(path) as f:
        return "\n".join(line.split("#")[0].rstrip() for line in f if line.split("#")[0].strip())


def optimist_deviation(system, record, update):
    """The largest one of the optimistic actor and its dual variables; 0 if there is none."""
    if not system.optimist:
        return 0.0
    return max(compare.largest_deviation(record[f"update_{update:03d}/{n}"], system.now[n].numpy(),
                                         system.optimist.arrays if n.startswith("optimist") else
                                         [(0, 1)]) for n in OPTIMIST)


def check(name, run, record, path):
    """Rows of the table."""
    group = "update_000/"
    file = configparser.ConfigParser()
    file.read(path)
    utd = int(file["train"].get("utd", 2))
    gamma = float(file["train"].get("gamma", peer.discount(compare.EPISODE_STEPS)))
    system = System(path, {n: int(run[n]) for n in compare.SIZES},
                    utd * int(run["env_steps"]) // 2, gamma,
                    {n: record[group + n] for n in compare.ARRAYS + OPTIMIST
                     if group + n in record})
    system.critic_adam.steps = int(record[group + "critic_steps"])
    system.actor_adam.steps = system.temperature_adam.steps = int(record[group + "actor_steps"])
    if system.optimist:
        for adam in system.optimist_adam, *system.dual_adams.values():
            adam.steps = system.actor_adam.steps
    for net, w in (system.critic, "critic"), (system.actor, "actor"):
        if system.now[w].shape[1] != net.size or system.now[w + "_state"].shape[1] != net.states:
            sys.exit(f"{name}: {w}: expected {net.size} parameters and {net.states} statistics, "
                     f"found {system.now[w].shape[1]}, {system.now[w + '_state'].shape[1]}")
    parts, results = compare.parts_of(system), []
    for u in range(len(run["batch/s"])):
        batch = compare.batch_of(run, u) | {"optimist_noise": run["batch/optimist_noise"][u]}
        found = system.update(batch, run["batch/next_noise"][u], run["batch/noise"][u])
        results.append([found.get(n, math.nan) for n in compare.RESULTS])
        if u + 1 in compare.AFTER:
            expected, now = compare.arrays(system), compare.snapshot(record, u + 1)
            row = [max(compare.largest_deviation(now[n], expected[n], parts[n]) for n in names)
                   for names in compare.GROUPS.values()]
            row.append(optimist_deviation(system, record, u + 1))
            row.append(compare.result_deviation(record["results"][:u + 1],
                                                compare.np.array(results)))
            yield name, u + 1, row, [BOUND] * len(row), ""


def main(folder, paths):
    torch.set_num_threads(1)
    run, rows = compare.read(folder + "/run.h5"), []
    for path in paths:
        name = os.path.basename(path)
        rows += check(name.removesuffix(".system"), run, compare.read(f"{folder}/{name}.h5"), path)
    compare.report("systems, float64: from the start", [*compare.GROUPS, "optimist", "results"], rows)
    for what in compare.failures:
        print(f"FAILED: {what}")
    print(f"\n{len(paths)} systems compared, {len(compare.failures)} deviations exceed their bounds")
    return 1 if compare.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
