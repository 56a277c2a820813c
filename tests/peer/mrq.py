"""Updates of MR.Q's agent (configs/systems/mrq.system) against PyTorch's: mrq.py FILE.h5 FILE.system

FILE.h5 was written by tests/peer/mrq.c in float64. Networks are those of the descriptions
(systems.py); losses, clipping and optimizers are PyTorch's own, and no gradient is computed by hand.
Written from the paper (Fujimoto et al., ICLR 2025) and the facts in its published code
(facebookresearch/MRQ, 8a44a7d). Prints the deviations after 1, 10 and 100 updates, as
update_compare.py defines them; exit status 1 if one exceeds the bound."""

import configparser
import os
import sys

import numpy as np
import torch
from torch.nn import functional

import systems
import update_compare as compare

BOUND = 1e-12
AFTER = (1, 10, 100)
BINS, TARGET_NOISE, CLIP, EXPLORATION = 65, 0.2, 0.3, 0.2
PARTS = "state", "action", "pair", "model"
CRITICS = "critic0", "critic1"
GROUPS = {"critics": CRITICS, "actor": ("actor",), "encoder": PARTS}


def two_hot(reward):
    """Weights of the bins, whose mean is the reward."""
    x = torch.linspace(-10, 10, BINS, dtype=torch.float64)
    bins = torch.sign(x) * (torch.exp(torch.abs(x)) - 1)
    above = torch.searchsorted(bins, reward, right=True).clamp(1, BINS - 1)
    low, high = bins[above - 1], bins[above]
    share = (reward - low) / (high - low)
    weights = torch.zeros(len(reward), BINS, dtype=torch.float64)
    rows = torch.arange(len(reward))
    weights[rows, above - 1] = 1 - share
    weights[rows, above] += share
    return weights


class Agent:
    def __init__(self, path, record):
        file = configparser.ConfigParser()
        file.read(path)
        s, folder = file["train"], os.path.dirname(path)
        text = {k: systems.read_text(os.path.join(folder, v)) for k, v in file["system"].items()}
        self.gamma, self.norm = float(s["gamma"]), float(s["gradient_norm"])
        self.observations, self.actions = int(record["observations"]), int(record["actions"])
        self.net, self.w, self.target = {}, {}, {}
        self.net["state"] = systems.Network(text["encoder_state"], self.observations)
        self.net["action"] = systems.Network(text["encoder_action"], self.actions)
        z, u = self.width("state", self.observations), self.width("action", self.actions)
        self.net["pair"] = systems.Network(text["encoder_pair"], z + u)
        x = self.width("pair", z + u)
        self.net["model"] = systems.Network(text["encoder_model"], x)
        self.net["actor"] = systems.Network(text["actor"].replace("dense A", f"dense {self.actions}"), z)
        for name in CRITICS:
            self.net[name] = systems.Network(text["critic"], x)
        for name, net in self.net.items():
            w = record[f"update_000/{name}"]
            if w.shape[1] != net.size:
                sys.exit(f"{name}: expected {net.size} parameters, found {w.shape[1]}")
            self.w[name] = torch.tensor(w, requires_grad=True)
            if f"update_000/{name}_target" in record:
                self.target[name] = torch.tensor(record[f"update_000/{name}_target"])
        decay = float(s["weight_decay"])
        self.optimizer = {
            "critic": self.adam(record, CRITICS, float(s["critic_lr"]), decay, "critic_steps"),
            "actor": self.adam(record, ["actor"], float(s["actor_lr"]), decay, "actor_steps"),
            "encoder": self.adam(record, PARTS, float(s["encoder_lr"]), decay, "encoder_steps")}
        self.scale, self.clipped = 1.0, []

    def width(self, name, inputs):
        net = self.net[name]
        w = torch.zeros(1, net.size, dtype=torch.float64)
        return net.forward(w, w[:, :0], torch.zeros(1, 2, inputs, dtype=torch.float64), True)[0].shape[2]

    def adam(self, record, names, rate, decay, steps):
        optimizer = torch.optim.AdamW([self.w[n] for n in names], lr=rate, weight_decay=decay)
        for n in names:
            optimizer.state[self.w[n]] = {
                "step": torch.tensor(float(record["update_000/" + steps])),
                "exp_avg": torch.tensor(record[f"update_000/{n}_m"]),
                "exp_avg_sq": torch.tensor(record[f"update_000/{n}_v"])}
        return optimizer

    def apply(self, name, x, target=False):
        w = self.target[name] if target else self.w[name]
        return self.net[name].forward(w, w[:, :0].detach(), x[None], True)[0][0]

    def pair(self, z, a, target=False):
        return self.apply("pair", torch.cat([z, self.apply("action", a, target)], 1), target)

    def refresh(self, scale):
        for name in self.target:
            self.target[name] = self.w[name].detach().clone()
        self.scale = scale

    def train_encoder(self, s, a, reward, mask, terminates):
        """s [steps + 1, batch, ...]; the others [steps, batch, ...]."""
        z, kept, loss = self.apply("state", s[0]), torch.ones(len(s[0]), 1, dtype=torch.float64), 0
        for i in range(len(a)):
            out = self.apply("model", self.pair(z, a[i]))
            done, z, logits = out[:, :1], out[:, 1:-BINS], out[:, -BINS:]
            with torch.no_grad():
                aim = self.apply("state", s[i + 1], True)
            loss = loss + (functional.mse_loss(z, aim, reduction="none") * kept).mean()
            entropy = -(two_hot(reward[i]) * functional.log_softmax(logits, 1)).sum(1, keepdim=True)
            loss = loss + 0.1 * (entropy * kept).mean()
            if terminates:
                loss = loss + 0.1 * ((done - (1 - mask[i][:, None])) ** 2 * kept).mean()
            kept = kept * mask[i][:, None]
        self.step("encoder", loss)
        return loss.item()

    def step(self, name, loss, norm=None):
        self.optimizer[name].zero_grad(set_to_none=True)
        parameters = self.optimizer[name].param_groups[0]["params"]
        for w, g in zip(parameters, torch.autograd.grad(loss, parameters)):
            w.grad = g
        if norm:
            self.clipped.append(torch.nn.utils.clip_grad_norm_(parameters, norm).item() > norm)
        self.optimizer[name].step()

    def inputs(self, s, a):
        with torch.no_grad():
            z = self.apply("state", s)
            return z, self.pair(z, a)

    def targets(self, next_s, reward, mask, noise):
        with torch.no_grad():
            z = self.apply("state", next_s, True)
            a = torch.tanh(self.apply("actor", z, True)) + (noise * TARGET_NOISE).clamp(-CLIP, CLIP)
            x = self.pair(z, a.clamp(-1, 1), True)
            q = torch.cat([self.apply(n, x, True) for n in CRITICS], 1).min(1).values
            return reward + self.gamma * mask * self.scale * q

    def update(self, s, a, next_s, reward, mask, noise):
        z, x = self.inputs(s, a)
        y = self.targets(next_s, reward, mask, noise)
        q = torch.cat([self.apply(n, x) for n in CRITICS], 1)
        loss = functional.smooth_l1_loss(q, y[:, None].expand(-1, 2))
        self.step("critic", loss, self.norm)
        f = self.apply("actor", z)
        x = self.pair(z, torch.tanh(f))
        policy_loss = -torch.cat([self.apply(n, x) for n in CRITICS], 1).mean() + 1e-5 * (f ** 2).mean()
        self.step("actor", policy_loss)
        gap = (q.detach() - y[:, None]).abs().max(1).values.mean()
        return [loss.item(), q.mean().item(), policy_loss.item(), gap.item()]

    def act(self, s, noise):
        with torch.no_grad():
            return (torch.tanh(self.apply("actor", self.apply("state", s)))
                    + EXPLORATION * noise).clamp(-1, 1)


def minibatch(record, name, u, *shape):
    return torch.tensor(record[name][u]).reshape(shape)


def deviations(agent, record, after):
    """The largest ones of the layers' arrays: of the groups, their targets, their moments."""
    group, out = f"update_{after:03d}/", {}
    for title, names in GROUPS.items():
        out[title] = max(compare.largest_deviation(record[group + n], agent.w[n].detach().numpy(),
                                                   agent.net[n].arrays) for n in names)
    out["targets"] = max(compare.largest_deviation(record[f"{group}{n}_target"], w.numpy(),
                                                   agent.net[n].arrays) for n, w in agent.target.items())
    out["moments"] = max(
        compare.largest_deviation(record[f"{group}{n}_{suffix}"], o.state[agent.w[n]][key].numpy(),
                                  agent.net[n].arrays)
        for o, names in zip(agent.optimizer.values(), GROUPS.values()) for n in names
        for suffix, key in (("m", "exp_avg"), ("v", "exp_avg_sq")))
    return out


def frozen(agent, record, sizes):
    """The deviation of a frozen minibatch's input and target."""
    n, obs, act, _ = sizes
    batch = [minibatch(record, f"batch/{name}", 0, n, -1) for name in ("s", "a", "next_s")]
    reward, mask = (minibatch(record, f"batch/{name}", 0, n) for name in ("reward", "mask"))
    found = agent.inputs(*batch[:2])[1], agent.targets(batch[2], reward, mask,
                                                       torch.tensor(record["frozen/noise"]))[:, None]
    action = agent.act(batch[0][:1], torch.tensor(record["frozen/act_noise"])).numpy()
    if np.abs(action - record["frozen/action"]).max() > 1e-7:
        compare.failures.append("the action differs")
    return max(compare.deviation(record["frozen/" + name], x.numpy())
               for name, x in zip(("input", "target"), found))


def main(path, system):
    torch.set_num_threads(1)
    record = compare.read(path)
    agent, rows = Agent(system, record), []
    n, period = int(record["batch"]), int(record["period"])
    steps = record["windows/reward"].shape[1] // n
    sizes = n, agent.observations, agent.actions, steps
    results, losses = [], []
    for u in range(len(record["results"])):
        if u % period == 0:
            agent.refresh(record["batch/scale"][u, 0])
            for k in range(u, min(u + period, len(record["results"]))):
                losses.append(agent.train_encoder(
                    minibatch(record, "windows/s", k, steps + 1, n, -1),
                    minibatch(record, "windows/a", k, steps, n, -1),
                    minibatch(record, "windows/reward", k, steps, n),
                    minibatch(record, "windows/mask", k, steps, n), u > 0))
        results.append(agent.update(*(minibatch(record, "batch/" + name, u, n, *tail) for name, tail in (
            ("s", (-1,)), ("a", (-1,)), ("next_s", (-1,)), ("reward", ()), ("mask", ()),
            ("noise", (-1,))))))
        if u + 1 in AFTER:
            row = deviations(agent, record, u + 1)
            row["results"] = np.abs(record["results"][:u + 1] / np.array(results) - 1).max()
            row["losses"] = np.abs(record["encoder_loss"][:len(losses), 0] / np.array(losses) - 1).max()
            row["frozen"] = frozen(agent, record, sizes) if u + 1 == len(record["results"]) else 0
            rows.append(("mrq", u + 1, list(row.values()), [BOUND] * len(row), ""))
            columns = list(row)
    if not 0 < sum(agent.clipped) < len(agent.clipped):
        compare.failures.append(f"expected clipped and other gradients, found {sum(agent.clipped)} of "
                                f"{len(agent.clipped)} clipped")
    compare.report("MR.Q, float64: from the start", columns, rows)
    for what in compare.failures:
        print(f"FAILED: {what}")
    return 1 if compare.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
