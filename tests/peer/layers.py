"""Every kind of layer and loss against PyTorch, in float64. Started by layers.sh.

For each critic: writes a checkpoint with random parameters and a vector, and compares the loss, its
gradient, and products with the Hessian and the matrices of Gauss-Newton's form with those of PyTorch
(double backward). PyTorch's outputs, losses and norms of gradients are in the checkpoint as proofs. Then the
statistics of the minibatches' gradients, and of the loss along Adam's step, from random moments. Fails if a
kind that the analyzer knows is in none of the critics.
"""

import json
import os
import re
import subprocess
import sys

import h5py
import numpy as np
import torch
from torch.nn.utils import vector_to_parameters

from layers_torch import Critic

MINIBATCHES, ROWS, LOSS_ROWS, INPUTS, ENSEMBLE = 3, 14, 10, 6, 2
BOUND = 1e-13  # relative to the norm of the vector; found: below 1e-15 times its cancellation

OPERATORS = "hessian", "ggn", "ntk", "ntk-value", "fisher"

ADAM, LEARNING_RATE = {"step": 7, "beta1": 0.8, "beta2": 0.98, "eps": 1e-3}, 0.01

CRITICS = {
    "mlp": "dense 8\nrelu\ndense 8 bias=no\ntanh\ndense 1\nloss mse weight=0.5\n",
    "curves": "dense 7\nleaky_relu\ndense 7\nsigmoid\ndense 7\nsoftplus\ndense 7\nsilu\ndense 7\nelu\n"
    "dense 7\nmish\ndense 7\nrelu6\ndense 1\nloss huber delta=0.4\n",
    "gelu": "dense 8\ngelu approximate=none\ndense 8\ngelu\ndense 8\nleaky_relu negative_slope=0.2\n"
    "dense 8\nrelu shift=-0.2\ndense 1\nloss mse\n",
    "xqc": "batchnorm\nrepeat 2 {\n  dense 8 bias=no project=unit\n  batchnorm\n  relu\n}\n"
    "dense 5 project=unit-kernel\nloss ce min=-5 max=5\n",
    "norms": "layernorm bias=no\ndense 8\nbatchnorm affine=no\nrelu\ndense 8\nlayernorm affine=no\ntanh\n"
    "dense 8\nlayernorm bias=no\nrelu\ndense 8\nrmsnorm eps=1e-3\nrelu\ndense 1\nloss mse\n",
    "groups": "groupnorm groups=2\ndense 12\ngroupnorm groups=4 eps=1e-5\nrelu\ndense 9\n"
    "groupnorm groups=3 bias=no\ntanh\ndense 8\ngroupnorm groups=2 affine=no\ndense 6\n"
    "groupnorm groups=1\nrelu\ndense 1\nloss mse\n",
    "folded": "batchnorm affine=no eps=1e-5\ndense 8\nbatchnorm\nrelu\ndense 4\nloss quantile\n",
    "simba": "dense 8\nresidual {\n  layernorm\n  dense 16\n  relu\n  dense 8\n}\nlayernorm eps=1e-5\n"
    "dense 1\nloss mse\n",
    "weighted": "dense 8\ntanh\ndense 1\nloss huber delta=0.4\n",
    "weighted ce": "batchnorm\ndense 8 bias=no\nbatchnorm\nrelu\ndense 5\nloss ce min=0 max=1\n",
    "weighted quantile": "layernorm\ndense 8\nsilu\ndense 4\nloss quantile\n",
    "frozen": "batchnorm trainable=no\ndense 8 trainable=no bias=no\nbatchnorm\nrelu\ndense 6\ntanh\n"
    "dense 1 trainable=no\nloss mse\n",
    "frozen alpha": "layernorm\ndense 8\nlerp init=0.3 trainable=no {\n  dense 8 trainable=no\n  relu\n"
    "  dense 8\n}\ndense 1\nloss mse\n",
    "d2rl": "dense 8\nrelu\nrepeat 2 {\n  concat input[0:6]\n  dense 8\n  relu\n}\ndense 1\nloss mse\n",
    "late actions": "input [:4]\nlayernorm\ndense 8\nsilu\nslice [1:7]\nresidual {\n  concat input[4:]\n"
    "  dense 6\n}\ntanh\ndense 3\nloss quantile\n",
    "joined": "batchnorm\ndense 8\nbatchnorm\nrelu\nconcat input[2:5]\ndense 8\nbatchnorm\nrelu\ndense 4\n"
    "loss ce min=0 max=1\n",
    "tqc": "layernorm\ndense 8\nsilu\ndense 4\nloss quantile weight=0.25\n",
    "own targets": "dense 8\nsilu\ndense 1\nloss mse\n",
    "own targets ce": "batchnorm\ndense 8\nbatchnorm\nrelu\ndense 4\nloss ce min=0 max=1\n",
    "heads": "dense 8\nrelu\nbranch {\n  dense 1\n  loss mse weight=0.5\n}\nbranch {\n  dense 6\n  tanh\n"
    "  dense 4\n  loss ce min=0 max=1 weight=2\n}\nbranch {\n  dense 3 trainable=no\n"
    "  loss quantile kappa=0.5\n}\n",
    "heads bn": "batchnorm\ndense 8\nbatchnorm\nrelu\nbranch {\n  dense 6\n  batchnorm\n  relu\n  dense 3\n"
    "  loss ce min=0 max=1\n}\nbranch {\n  dense 1\n  loss huber\n}\n",
    "towers": "branch {\n  slice [0:4]\n  layernorm\n  dense 5\n  relu\n}\nbranch {\n  slice [4:6]\n  dense 3\n"
    "  tanh\n}\nresidual {\n  branch {\n    dense 3\n    silu\n  }\n  branch {\n    dense 5\n  }\n}\n"
    "dense 1\nloss mse\n",
    "dueling dqn": "input [:4]\ndense 8\nrelu\nbranch {\n  dense 5\n  relu\n  dense 1\n}\nbranch {\n"
    "  dense 5\n  relu\n  dense 2\n}\ndueling\nselect input[4:6]\nloss huber\n",
    "rainbow": "input [1:4]\ndense 8\nrelu\nbranch {\n  dense 5\n}\nbranch {\n  dense 15\n}\n"
    "dueling atoms=5\nselect input[3:6]\nloss ce min=-10 max=10\n",
    "simnorm": "dense 8\nsimnorm dim=4\ndense 8 bias=no\nlayernorm eps=1e-5\nmish\ndense 8\nsimnorm\n"
    "dense 5\nloss ce min=0 max=1\n",
    "droq": "input [:2]\ndense 4\ndropout input[2:6] rate=0.1\nlayernorm eps=1e-5\nrelu\ndense 4\n"
    "dropout input[2:6]\nlayernorm\nrelu\ndense 1\nloss mse\n",
    "images": "conv2d 4 channels=1 height=2 width=3 size=2 padding=1\nrelu\n"
    "conv2d 3 size=2 stride=2 bias=no\ntanh\ndense 32\nsilu\n"
    "conv2d 4 channels=2 height=4 width=4 size=3\nlayernorm\nrelu\ndense 1\nloss mse\n",
    "images bn": "batchnorm\nconv2d 4 channels=2 height=1 width=3 size=1\nbatchnorm\nrelu\n"
    "dense 8 trainable=no\nconv2d 4 channels=2 height=2 width=2 size=2 trainable=no\n"
    "batchnorm\nrelu\ndense 3\nloss ce min=0 max=1\n",
    "weight norm": "layernorm\ndense 8 norm=weight\nlayernorm\nrelu\n"
    "dense 6 norm=weight groups=2 bias=no\ntanh\ndense 1 norm=weight\nloss mse\n",
    "spectral norm": "dense 8\nrelu\ndense 8 norm=spectral\nrelu\ndense 7 norm=spectral bias=no\n"
    "silu\ndense 1\nloss huber\n",
    "normed bn": "batchnorm affine=no\ndense 8 norm=spectral\nbatchnorm\nrelu\n"
    "dense 8 norm=weight\nbatchnorm\nrelu\ndense 5 norm=weight\nloss ce min=0 max=1\n",
    "frozen norms": "dense 8 norm=weight trainable=no\ntanh\ndense 8\nsilu\n"
    "dense 8 norm=spectral trainable=no\ntanh\ndense 1\nloss mse\n",
    "one state": "batchnorm\ndense 8\nrelu\nbatchrenorm rmax=1.5 dmax=0.5\ntanh\ndense 1\n"
    "loss mse\n",
    "batchrenorm": "batchrenorm eps=1e-5\ndense 8\nbatchrenorm rmax=1.5 dmax=0.5\nrelu\ndense 8\nbatchnorm\n"
    "batchrenorm\ntanh\ndense 1\nloss mse\n",
    "td7": "dense 8\navgl1norm\ndense 6 bias=no\navgl1norm eps=100\nelu\ndense 1\nloss huber\n",
    "simba-v2": "append 3\nl2norm\ndense 8 bias=no\nscaler init=1.4 scale=0.35\nl2norm\n"
    "lerp init=0.3 scale=0.4 {\n  dense 16 bias=no\n  scaler\n  relu\n  dense 8 bias=no\n  l2norm\n}\n"
    "dense 4 groups=2\nloss quantile kappa=0.6\n",
}


WEIGHTED = "weighted", "weighted ce", "weighted quantile"  # with weights of rows, some of them 0

OWN_TARGETS = "tqc", "own targets", "own targets ce"  # each critic has targets of its own
TARGETS = {"tqc": 7}  # targets of a row, where they are not as many as outputs


def targets(critic, rng, outputs):
    """Random targets of each critic; distributions for ce."""
    t = rng.standard_normal((MINIBATCHES, LOSS_ROWS, ENSEMBLE, outputs))
    at = 0
    for line, width in critic.heads or [(critic.lines[-1], t.shape[-1])]:
        columns = t[..., at : at + width]
        if line[1] == "ce":
            columns[...] = np.exp(columns)
            columns /= columns.sum(axis=-1, keepdims=True)
        at += width
    return t


class Problem:
    def __init__(self, text, name=""):
        rng = np.random.default_rng(5)
        self.critics = [Critic(text, seed) for seed in range(ENSEMBLE)]
        self.text = text
        self.rows = ROWS if "batch" in text else LOSS_ROWS
        self.input = torch.tensor(rng.standard_normal((MINIBATCHES, self.rows, INPUTS)))
        outputs = [critic.outputs(self.input[0]).shape[1] for critic in self.critics]  # draws w
        self.target = torch.tensor(targets(self.critics[0], rng, TARGETS.get(name, outputs[0])))
        if name not in OWN_TARGETS:
            self.target = self.target[:, :, :1]
        self.weight = torch.ones(MINIBATCHES, LOSS_ROWS, dtype=torch.float64)
        self.weighted = name in WEIGHTED
        if self.weighted:
            self.weight = torch.tensor(rng.choice([0, 0.5, 1, 2.5], tuple(self.weight.shape)))
        self.w = [[w for w in critic.w.values() if w.requires_grad] for critic in self.critics]
        self.arrays = [a for w in self.w for a in w]
        self.size = sum(a.numel() for a in self.arrays)
        self.v = torch.tensor(rng.standard_normal(self.size))
        self.moments = torch.tensor(np.stack([rng.normal(size=self.size), rng.uniform(0.1, 2, self.size)]))

    def write(self, checkpoint, vector):
        with h5py.File(checkpoint, "w") as f:
            f.attrs.update(format="kappascope-checkpoint", version=2 if self.weighted else 1)
            f.attrs["learning_rate"] = LEARNING_RATE
            if self.weighted:
                f["batch/weight"] = self.weight.numpy()
            f.create_group("critic").attrs.update(arch=self.text, ensemble=ENSEMBLE)
            arrays = [{**critic.w, **critic.running} for critic in self.critics]
            for name in arrays[0]:
                f[f"critic/{name}"] = np.stack([a[name].detach().numpy() for a in arrays])
            f.create_group("optimizer").attrs.update(ADAM)
            names = [name for name, w in self.critics[0].w.items() if w.requires_grad]
            for moment, x in zip("mv", self.moments):
                for name, *copies in zip(names, *self.split(x)):
                    f[f"optimizer/{moment}/{name}"] = np.stack(copies)
            own = self.target.shape[2] > 1
            f["batch/target"] = (self.target if own else self.target[:, :, 0]).numpy()
            f["batch/input"] = self.input.numpy()
            f["batch/output"], f["batch/loss"], f["batch/gradient_norm"] = self.proofs()
        with h5py.File(vector, "w") as f:
            f.attrs.update(format="kappascope-vector", version=1)
            f["vector"] = self.v[None].numpy()

    def split(self, x):
        """For every critic: its part of a vector, as arrays like its parameters."""
        rest = iter(x.split([a.numel() for a in self.arrays]))
        return [[next(rest).view_as(a) for a in w] for w in self.w]

    def forward(self):
        """Of every minibatch: the critics' outputs; the loss."""
        outputs = [[c.outputs(x)[:LOSS_ROWS] for c in self.critics] for x in self.input]
        losses = [
            sum(
                (weight * c.losses(f, t[:, e % t.shape[1]])).mean()
                for e, (c, f) in enumerate(zip(self.critics, fs))
            )
            for fs, t, weight in zip(outputs, self.target, self.weight)
        ]
        return outputs, losses

    def proofs(self):
        """Outputs [N, B, E, K], losses [N], norms of gradients [N], which the analyzer compares."""
        outputs, losses = self.forward()
        norms = [flat(grad(loss, self.arrays)).norm().item() for loss in losses]
        return (
            torch.stack([torch.stack(fs, 1) for fs in outputs]).detach().numpy(),
            [loss.item() for loss in losses],
            norms,
        )

    def parts(self):
        """For every critic and minibatch: its parameters, outputs, rows' losses, and its part of v."""
        for e, (critic, w, v) in enumerate(zip(self.critics, self.w, self.split(self.v))):
            for n in range(MINIBATCHES):
                f = critic.outputs(self.input[n])[:LOSS_ROWS]
                losses = self.weight[n] * critic.losses(
                    f, self.target[n, :, e % self.target.shape[2]]
                )
                yield w, f, losses, v

    def values(self, f):
        """The numbers that the outputs [B, K] of all heads stand for, as columns."""
        at, found, critic = 0, [], self.critics[0]
        for line, width in critic.heads or [(critic.lines[-1], f.shape[1])]:
            head, at = f[:, at : at + width], at + width
            if line[1] == "ce":
                ends = (float(word.split("=")[1]) for key in ("min", "max") for word in line if key in word)
                head = (head.softmax(1) * torch.linspace(*ends, width, dtype=torch.float64)).sum(1, True)
            found.append(head.mean(1, True) if line[1] == "quantile" else head)
        return torch.cat(found, 1)

    def reference(self):
        """loss, gradient, and the products of the operators with v."""
        loss, sums, share = 0, {}, 1 / (LOSS_ROWS * MINIBATCHES)
        for w, f, losses, v in self.parts():
            value = losses.sum() * share
            bar = grad(value, w, create_graph=True)
            hessian = grad(bar, w, v)
            u = torch.zeros_like(f, requires_grad=True)
            f_dot = grad(grad(f, w, u, create_graph=True), [u], v)[0]
            f_bar = grad(value, [f], create_graph=True)[0]
            f_bar_dot = grad([f_bar], [f], [f_dot])[0] if f_bar.requires_grad else 0 * f
            ggn = grad(f, w, f_bar_dot)
            values = self.values(f)
            value_dot = torch.stack(
                [(grad([values[:, k]], [f], torch.ones(LOSS_ROWS))[0] * f_dot).sum(1) for k in range(values.shape[1])], 1
            )
            row_bar = f_bar / share
            row_dot = (row_bar * f_dot).sum(1, True)
            products = (
                bar,
                hessian,
                ggn,
                grad(f, w, share * f_dot),
                grad(values, w, share * value_dot),
                grad(f, w, share * row_bar * row_dot),
            )
            loss += value.item()
            mine = torch.stack([flat(product) for product in products])
            sums[id(w)] = sums.get(id(w), 0) + mine
        return loss, *torch.cat([sums[id(w)] for w in self.w], dim=1).numpy()

    def loss_at(self, step):
        """The loss at the parameters minus a vector."""
        here = flat(self.arrays)
        vector_to_parameters(here - step, self.arrays)
        loss = sum(self.forward()[1]).item() / MINIBATCHES
        vector_to_parameters(here, self.arrays)
        return loss

    def deviations(self, found):
        """Of the analyzer's statistics, each relative to the size of the terms that it is computed from."""
        empty = {"infinite": np.inf, "unresolved": np.nan}
        found = {k: empty[found[f"{k}_state"]] if x is None else x for k, x in found.items()}
        losses, n, eta = self.forward()[1], MINIBATCHES, LEARNING_RATE
        g = torch.stack([flat(grad(loss, self.arrays)) for loss in losses])
        m, v = (x / (1 - ADAM[beta] ** ADAM["step"]) for beta, x in zip(("beta1", "beta2"), self.moments))
        u = m / (v.sqrt() + ADAM["eps"])
        bar = grad(sum(losses) / n, self.arrays, create_graph=True)
        hu = flat(grad(bar, self.arrays, sum(self.split(u), [])))
        size, slope, bend = g.square().sum() / n, g.mean(0) @ u, hu @ u
        square = sum(g[i] @ g[j] for i in range(n) for j in range(n) if i != j) / (n * n - n)
        variance, signal = size - square, square.clamp(min=0)
        steep, bent = g.mean(0).norm() * u.norm(), hu.norm() * u.norm()
        loss, there = self.loss_at(0 * u), self.loss_at(eta * u)
        expected = {
            "gradient_square": (square, size),
            "gradient_variance": (variance, size),
            "noise_scale": (variance / signal, (size / square) ** 2),
            "signal_share": (signal / (signal + variance / n), 1),
            "step_curvature": (bend / (u @ u), bent / (u @ u)),
            "step_change": (there - loss, max(loss, there)),
            "step_change_quadratic": (eta**2 / 2 * bend - eta * slope, eta * steep + eta**2 / 2 * bent),
        }
        errors = {k: float(found[k] != x and abs(found[k] - x) / scale) for k, (x, scale) in expected.items()}
        lower, middle, upper = (found[f"critical_sharpness{end}"] for end in ("_lower", "", "_upper"))
        good = np.isnan([lower, middle, upper]).all()
        if slope > 0:  # downhill: every critic here has a critical length
            good = lower < middle < upper <= 1.0201 * lower and (
                self.loss_at(2 / upper * u) <= loss < self.loss_at(2 / lower * u)
            )
        return {**errors, "critical_sharpness": 0 if good else np.inf}


def grad(outputs, inputs, along=None, **settings):
    """Derivatives; zeros where there are none."""
    found = torch.autograd.grad(
        outputs, inputs, along, allow_unused=True, retain_graph=True, **settings
    )
    return [torch.zeros_like(x) if g is None else g for g, x in zip(found, inputs)]


def flat(arrays):
    return torch.cat([a.detach().flatten() for a in arrays])


def read(path):
    with h5py.File(path) as f:
        return f["vector"][0], f.attrs.get("loss")


def deviation(found, expected):
    return np.linalg.norm(found - expected) / max(np.linalg.norm(expected), 1e-300)


def compare(program, folder, name, text):
    problem = Problem(text, name)
    file = {
        k: os.path.join(folder, f"{name.replace(' ', '-')}.{k}.h5")
        for k in ("checkpoint", "v", "g", *OPERATORS)
    }
    problem.write(file["checkpoint"], file["v"])

    def analyze(*arguments):
        command = [program, "--quiet", *arguments, file["checkpoint"]]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout

    analyze("--gradient", file["g"])
    for operator in OPERATORS:
        analyze(f"--operator={operator}", "--precision=f64", "--apply", file["v"], "--output", file[operator])
    loss, *vectors = problem.reference()
    gradient, found = read(file["g"])
    errors = {
        "loss": abs(found - loss) / abs(loss),
        "gradient": deviation(gradient, vectors[0]),
    }
    for operator, vector in zip(OPERATORS, vectors[1:]):
        errors[operator] = deviation(read(file[operator])[0], vector)
    for _ in range(2):  # downhill and uphill
        statistics = json.loads(analyze("--json", "--order=2", "--precision=f64"))
        for k, e in problem.deviations(statistics).items():
            errors[k] = np.maximum(e, errors.get(k, 0))  # NaN, if one is
        problem.moments[0].neg_()
        problem.write(file["checkpoint"], file["v"])
    good = all(e <= BOUND for e in errors.values())
    print(
        f"{name:18} {problem.size:5} parameters ",
        ", ".join(f"{k} {e:.1e}" for k, e in errors.items()),
        "" if good else "FAILED",
        flush=True,
    )
    return good


def known_kinds(program, folder):
    """The kinds of layers in the analyzer's message about an unknown one."""
    path = os.path.join(folder, "unknown.h5")
    problem = Problem(CRITICS["mlp"])
    problem.text = "unknown\n"
    problem.write(path, os.path.join(folder, "unknown.v.h5"))
    message = subprocess.run([program, path], stderr=subprocess.PIPE, text=True).stderr
    return re.search(r"known: ([^)]*)", message)[1].split(", ")


def main():
    program, folder, *names = sys.argv[1:]
    words = {line.split()[0] for text in CRITICS.values() for line in text.splitlines()}
    missing = [kind for kind in known_kinds(program, folder) if kind not in words]
    good = [
        compare(program, folder, name, text)
        for name, text in CRITICS.items()
        if not names or name in names
    ]
    if missing:
        sys.exit("layers.py: kinds of layers that no critic here has: " + ", ".join(missing))
    sys.exit(
        0 if all(good) else f"layers.py: the analyzer disagrees with PyTorch by more than {BOUND:g}"
    )


main()
