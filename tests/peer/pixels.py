"""Updates of agents that see images against PyTorch's: pixels.py FILE.h5 FILE.system [DRQV2]

FILE.h5 was written by tests/peer/pixels.c in float64. Networks are those of the descriptions (systems.py), frames are
moved by grid_sample as in DrQ-v2, and no gradient is computed by hand. Written from the paper (Yarats et al., ICLR 2022)
and the facts in its published code. With DRQV2, a clone of facebookresearch/drqv2 (c0c650b), the authors' own class
makes the same updates of drqv2.system. Prints the deviations after 1, 10 and 100 updates, as update_compare.py defines
them; exit status 1 if one exceeds the bound."""

import configparser
import importlib
import os
import sys
from unittest import mock

import numpy as np
import torch
from torch.nn import functional

import layers_torch
import systems
import update as peer
import update_compare as compare

BOUND = 1e-11
AFTER = (1, 10, 100)
FRAMES, SIDE, PAD, LIMIT = 3, 84, 4, 1 - 1e-6
PARTS = "critic", "actor", "image", "trunk"
GROUPS = {"critics": ("critic",), "actor": ("actor",), "image": ("image",), "trunk": ("trunk",),
          "targets": ("target", "trunk_target"), "statistics": ("critic_state", "actor_state"),
          "moments": [f"{n}_{k}" for n in PARTS for k in "mv"]}


class Replay:
    """Rows of frames; behind an episode's last transition there is a row with its last frame."""

    def __init__(self, record):
        # KappaScope's networks see pixel/255 - 0.5 in float32: these pixels give the same numbers in float64.
        seen = record["replay/frame"].astype(np.float32) / np.float32(255) - np.float32(0.5)
        self.frame = ((seen.astype(float) + 0.5) * 255).reshape(-1, 3, SIDE, SIDE)
        self.a = record["replay/a"]
        self.reward, self.mask, self.ends = record["replay/rest"].T

    def state(self, row):
        """Three frames, the oldest first; at the start of an episode the first one repeatedly."""
        start = row
        while start > 0 and not self.ends[start - 1]:
            start -= 1
        return np.concatenate([self.frame[max(row - k, start)] for k in reversed(range(FRAMES))])

    def window(self, row, n, gamma):
        """s, a, the sum of n rewards, the value's discount, the state after them."""
        assert not self.ends[row:row + n].any(), "a window leaves its episode"
        reward = sum(gamma ** k * self.reward[row + k] for k in range(n))
        rounded = float(np.float32(gamma ** (n - 1)))  # a row's mask, in KappaScope
        return (self.state(row), self.a[row], reward, gamma * rounded * np.prod(self.mask[row:row + n]),
                self.state(row + n))


def moved(images, shift):
    """DrQ-v2's random shifts of images [rows, 9, 84, 84] (0 to 255) by shift [rows, (x, y)] pixels."""
    padded, n = functional.pad(images, [PAD] * 4, "replicate"), SIDE + 2 * PAD
    place = torch.linspace(-1 + 1 / n, 1 - 1 / n, n, dtype=torch.float64)[:SIDE]
    grid = torch.stack([place.expand(SIDE, -1), place[:, None].expand(-1, SIDE)], 2)
    return functional.grid_sample(padded, grid + shift[:, None, None] * 2 / n, align_corners=False)


class Agent(peer.Agent):
    def __init__(self, path, record):
        file = configparser.ConfigParser()
        file.read(path)
        self.settings = s = file["train"]
        texts = {name: systems.read_text(os.path.join(os.path.dirname(path), text))
                 for name, text in file["system"].items()}
        start = {n: record["update_000/" + n] for names in GROUPS.values() for n in names}
        self.now = {n: torch.tensor(x) for n, x in start.items()}
        self.actions, self.gamma, self.tau = int(record["actions"]), float(s["gamma"]), float(s["tau"])
        self.image = systems.Network(texts["image"], FRAMES * 3 * SIDE * SIDE)
        self.trunk = systems.Network(texts["trunk"], width(self.image, FRAMES * 3 * SIDE * SIDE))
        features = width(self.image, FRAMES * 3 * SIDE * SIDE)
        self.critic = systems.Network(texts["critic"], width(self.trunk, features) + self.actions)
        self.actor = systems.Network(texts["actor"].replace("dense A", f"dense {self.actions}"), features)
        loss = layers_torch.options(self.critic.policy)
        self.ce, self.critics, self.dtype = "ce" in self.critic.policy, len(start["critic"]), torch.float64
        self.v_min, self.v_max = float(loss.get("min", 0)), float(loss.get("max", 0))
        self.support = torch.linspace(self.v_min, self.v_max, 101, dtype=torch.float64)
        self.loss_factor = 0.5 * float(loss.get("weight", 1))
        self.joint, self.adams = self.critic.states > 0, {}
        for name, rate, steps in (("critic", "critic_lr", "critic"), ("trunk", "critic_lr", "critic"),
                                  ("image", "encoder_lr", "image"), ("actor", "actor_lr", "actor")):
            self.adams[name] = peer.Adam(self.now[name], self.now[name + "_m"], self.now[name + "_v"], 1,
                                         (float(s[rate]), float(s[rate])))
            self.adams[name].steps = int(record[f"update_000/{steps}_steps"])

    def temperature(self):
        return torch.tensor(0.0)

    def apply(self, name, w, x, training=True):
        """One network on rows, and its statistics after that."""
        state = self.now.get(name + "_state", torch.zeros(1, 0))
        y, state = getattr(self, name).forward(w, state, x[None], training)
        return y[0], state

    def see(self, w, images):
        return self.apply("image", w, (images / 255 - 0.5).flatten(1))[0]

    def sampled(self, e, noise, std, clip, training, w=None):
        heads, state = self.apply("actor", self.now["actor"] if w is None else w, e, training)
        mean = torch.tanh(heads)
        a = mean + (std * noise).clamp(-clip, clip)
        return a - (a - a.clamp(-LIMIT, LIMIT)).detach(), state

    def inputs(self, trunk, e, next_e, a, next_a):
        """(s, a), then (s', a')."""
        h = self.apply("trunk", trunk, torch.cat([e, next_e]))[0]
        return torch.cat([h, torch.cat([a, next_a])], 1)

    def ahead(self, e, next_e, a, reward, discount, noise, std):
        """a' and the targets."""
        clip, rows = float(self.settings["noise_clip"]), len(a)
        with torch.no_grad():
            next_a, _ = self.sampled(next_e, noise, std, clip, False)
            x = self.inputs(self.now["trunk_target"], e, next_e, a, next_a)
            x = (x if self.joint else x[rows:]).expand(self.critics, -1, -1)
            f, _ = self.critic.forward(self.now["target"], self.now["critic_state"], x, True)
            return next_a, self.targets(f[:, -rows:], reward, discount / self.gamma, torch.zeros(rows))[0]

    def update(self, s, a, reward, discount, next_s, next_noise, noise, std):
        now, rows = self.now, len(a)
        w = {name: now[name].clone().requires_grad_() for name in ("critic", "trunk", "image")}
        with torch.no_grad():
            next_e = self.see(now["image"], next_s)
        e = self.see(w["image"], s)
        next_a, target = self.ahead(e.detach(), next_e, a, reward, discount, next_noise, std)
        actor = now["actor"].clone().requires_grad_()
        policy, actor_state = self.sampled(e.detach(), noise, std, float(self.settings["noise_clip"]), True,
                                           actor)
        x = self.inputs(w["trunk"], e, next_e, a, next_a)
        x = (x if self.joint else x[:rows]).expand(self.critics, -1, -1)
        f, critic_state = self.critic.forward(w["critic"], now["critic_state"], x, True)
        f = f[:, :rows]
        loss = self.critic_loss(f, target)
        for name, g in zip(w, torch.autograd.grad(loss, w.values())):
            self.adams[name].step(g)
        self.critic.project(now["critic"])
        now["critic_state"].copy_(critic_state)
        for target, name in ("target", "critic"), ("trunk_target", "trunk"):
            now[target].copy_((1 - self.tau) * now[target] + self.tau * now[name])
        h = self.apply("trunk", now["trunk"], e.detach())[0]
        x = torch.cat([h, policy], 1).expand(self.critics, -1, -1)
        outputs, _ = self.critic.forward(now["critic"], now["critic_state"], x, False)
        policy_loss = -self.values(outputs)[0].min(0).values.mean()
        (g,) = torch.autograd.grad(policy_loss, actor)
        self.adams["actor"].step(g)
        self.actor.project(now["actor"])
        now["actor_state"].copy_(actor_state)
        return [loss.item(), self.values(f.detach())[0].mean().item(), policy_loss.item()]

    def deviations(self, record, after):
        parts = {name: getattr(self, name).arrays for name in PARTS}
        parts |= {"target": parts["critic"], "trunk_target": parts["trunk"]}
        parts |= {n + "_state": [(at, 2 * width) for _, _, at, width in getattr(self, n).layers]
                  for n in ("critic", "actor")}
        return [max(compare.largest_deviation(record[f"update_{after:03d}/{n}"], self.now[n].numpy(),
                                              parts.get(n) or parts[n[:-2]] if n[-2:] in ("_m", "_v")
                                              else parts[n]) for n in names) for names in GROUPS.values()]


def width(net, inputs):
    w = torch.zeros(1, net.size, dtype=torch.float64)
    return net.forward(w, w[:, :0], torch.zeros(1, 2, inputs, dtype=torch.float64), True)[0].shape[2]


class Authors:
    """DrQ-v2's own agent with the same start. Only its random numbers are replaced."""

    def __init__(self, folder, agent, record):
        sys.path.insert(0, folder)
        for unused in "hydra", "omegaconf":  # by the agent, though these files import them
            sys.modules[unused] = mock.MagicMock()
        self.program, self.utils = importlib.import_module("drqv2"), importlib.import_module("utils")
        torch.set_default_dtype(torch.float64)
        torch.Tensor.float = torch.Tensor.double  # which update() calls
        s, n = agent.settings, agent.actions
        sizes = [agent.trunk.arrays[1][1], agent.critic.arrays[1][1]]
        self.agent = self.program.DrQV2Agent((9, SIDE, SIDE), (n,), "cpu", float(s["critic_lr"]), *sizes,
                                             float(s["tau"]), 0, 1, "1", float(s["noise_clip"]), False)
        self.nets = {"image": [self.agent.encoder], "trunk": [self.agent.critic.trunk],
                     "trunk_target": [self.agent.critic_target.trunk], "actor": [self.agent.actor],
                     "critic": [self.agent.critic.Q1, self.agent.critic.Q2],
                     "target": [self.agent.critic_target.Q1, self.agent.critic_target.Q2]}
        for name, nets in self.nets.items():
            for e, net in enumerate(nets):
                at = 0
                for p in net.parameters():
                    w = torch.tensor(record["update_000/" + name][e, at:at + p.numel()])
                    p.data.copy_(w.reshape(p.flatten(1).t().shape).t().reshape(p.shape) if p.dim() > 1 else w)
                    at += p.numel()
        for optimizer, names in ((self.agent.encoder_opt, ["image"]), (self.agent.actor_opt, ["actor"]),
                                 (self.agent.critic_opt, ["trunk", "critic"])):
            self.set_moments(optimizer, names, record)

    def set_moments(self, optimizer, names, record):
        for name in names:
            steps = int(record[f"update_000/{name if name in ('image', 'actor') else 'critic'}_steps"])
            for e, net in enumerate(self.nets[name]):
                at = 0
                for p in net.parameters():
                    m, v = (torch.tensor(record[f"update_000/{name}_{k}"][e, at:at + p.numel()]) for k in "mv")
                    shape = p.flatten(1).t().shape if p.dim() > 1 else p.shape
                    turn = (lambda x: x.reshape(shape).t().reshape(p.shape)) if p.dim() > 1 else (lambda x: x)
                    optimizer.state[p] = {"step": torch.tensor(float(steps)), "exp_avg": turn(m).contiguous(),
                                          "exp_avg_sq": turn(v).contiguous()}
                    at += p.numel()

    def update(self, images, a, reward, discount, next_images, shifts, noises, std):
        shifts, noises = list(shifts), list(noises)
        self.program.torch.randint = lambda low, high, size, device, dtype: shifts.pop(0).reshape(size)
        self.utils._standard_normal = lambda shape, dtype, device: noises.pop(0).clone()
        self.agent.stddev_schedule = str(std)
        batch = images, a, reward[:, None], discount[:, None], next_images
        self.agent.update(iter([tuple(x.numpy() for x in batch)]), 0)

    def deviations(self, record, after):
        """Of the parameters, as one array per network."""
        out = []
        for name, nets in self.nets.items():
            found = np.stack([np.concatenate([(p.flatten(1).t() if p.dim() > 1 else p).detach().flatten().numpy()
                                              for p in net.parameters()]) for net in nets])
            out.append(compare.deviation(record[f"update_{after:03d}/{name}"], found))
        return out


def frozen(agent, record, batch, s, next_s):
    """The deviation of a checkpoint's minibatch, and of the actions of its first row."""
    a, reward, discount = batch
    with torch.no_grad():
        e, next_e = agent.see(agent.now["image"], s), agent.see(agent.now["image"], next_s)
        std = float(record["batch/std"][-1, 0])
        next_a, target = agent.ahead(e, next_e, a, reward, discount, torch.tensor(record["frozen/noise"]), std)
        x = agent.inputs(agent.now["trunk"], e, next_e, a, next_a)
        found = {"input": x if agent.joint else x[:len(a)], "target": target}
        noise = torch.tensor(record["frozen/act_noise"])
        action = [agent.sampled(e[:1], n, std, np.inf, False)[0] for n in (noise, 0 * noise)]
    if np.abs(torch.cat(action).numpy() - record["frozen/action"]).max() > 1e-7:
        compare.failures.append("the action differs")
    return max(compare.deviation(record["frozen/" + n], x.numpy()) for n, x in found.items())


def minibatch(record, replay, settings, u):
    """Images of s and s', a, reward, discount."""
    rows = [replay.window(int(row), int(settings["n_step"]), float(settings["gamma"]))
            for row in record["batch/row"][u]]
    s, a, reward, discount, next_s = (torch.tensor(np.array(x), dtype=torch.float64) for x in zip(*rows))
    return s, next_s, (a, reward, discount)


def main(path, system, authors=None):
    torch.set_num_threads(1)
    record = compare.read(path)
    agent, replay, n = Agent(system, record), Replay(record), int(record["batch"])
    own = authors and Authors(authors, agent, record)
    results, rows, own_rows, name = [], [], [], os.path.basename(system).removesuffix(".system")
    for u in range(len(record["results"])):
        images, next_images, batch = minibatch(record, replay, agent.settings, u)
        shift = torch.tensor(record["batch/shift"][u]).reshape(n, 2, 2)
        s, next_s = moved(images, shift[:, 0]), moved(next_images, shift[:, 1])
        noises = [torch.tensor(record["batch/" + k][u]).reshape(n, -1) for k in ("next_noise", "noise")]
        std = float(record["batch/std"][u, 0])
        results.append(agent.update(s, *batch, next_s, *noises, std))
        if own:
            own.update(images, *batch, next_images, (shift[:, 0], shift[:, 1]), noises, std)
        if u + 1 in AFTER:
            row = agent.deviations(record, u + 1)
            row.append(compare.result_deviation(record["results"][:u + 1], np.array(results)))
            rows.append((name, u + 1, row, [BOUND] * len(row), ""))
            if own:
                row = own.deviations(record, u + 1)
                own_rows.append((name, u + 1, row, [BOUND] * len(row), ""))
    images, next_images, batch = minibatch(record, replay, agent.settings, 0)
    shift = torch.tensor(record["batch/shift"][0]).reshape(n, 2, 2)
    row = [frozen(agent, record, batch, moved(images, shift[:, 0]), moved(next_images, shift[:, 1]))]
    compare.report("from pixels, float64: from the start", [*GROUPS, "results"], rows)
    compare.report("a checkpoint's minibatch", ["deviation"], [(name, len(results), row, [BOUND], "")])
    if own:
        compare.report("against the authors' program", [*own.nets], own_rows)
    for what in compare.failures:
        print(f"FAILED: {what}")
    return 1 if compare.failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
