"""Critics by their descriptions (configs/README.md) in PyTorch: layers, losses, random
parameters."""

import numpy as np
import torch
from torch.nn import functional
from torch.nn.utils import parametrizations


def options(words):
    """The options NAME=VALUE of a line, numbers as numbers."""
    pairs = (word.split("=") for word in words if "=" in word)
    return {k: float(v) if v.lstrip("+-")[:1].isdigit() else v for k, v in pairs}


def part(word):
    """The Python slice of a word such as input[2:5]."""
    return slice(*(int(a) if a else None for a in word[word.index("[") + 1 : -1].split(":")))


def plain(name, **defaults):
    """A layer without parameters: PyTorch's function of this name, with its options."""
    function = getattr(functional, name)
    return lambda critic, x, words: function(x, **{**defaults, **options(words)})


def kernel_of(critic, norm, rows, n, spread):
    """The kernel [rows, n] of a dense. The second derivative of PyTorch 1.13's own weight_norm is
    wrong: by a difference of its first derivatives it is off by half, while that of this formula
    agrees to 1e-10."""
    w = critic.parameter("v" if norm == "weight" else "kernel", (rows, n), spread=spread)
    if norm == "weight":
        return critic.parameter("g", (n,), mean=1) * w / w.norm(dim=0)
    if norm == "spectral":
        torch.manual_seed(len(critic.w))
        module = parametrizations._SpectralNorm(w.detach().t()).eval()
        for name, stored in (("u", module._u), ("v", module._v)):
            stored.copy_(critic.state(name, lambda: stored.clone()))
        return module(w.t()).t()
    return w


def dense(critic, x, words):
    n, o = int(words[0]), options(words)
    groups = int(o.get("groups", 1))
    kernel = kernel_of(critic, o.get("norm"), x.shape[1] // groups, n, 1.2 / x.shape[1] ** 0.5)
    y = torch.cat([a @ w for a, w in zip(x.chunk(groups, 1), kernel.chunk(groups, 1))], 1)
    return y if o.get("bias") == "no" else y + critic.parameter("bias", (n,))


def conv2d(critic, x, words):
    """The image is that of the line, or what the last conv2d gave."""
    n, o = int(words[0]), options(words)
    if "channels" in o:
        critic.image = [int(o[side]) for side in ("channels", "height", "width")]
    image, size = x.unflatten(1, critic.image), int(o["size"])
    kernel = critic.parameter("kernel", (image.shape[1] * size * size, n), spread=0.4)
    bias = None if o.get("bias") == "no" else critic.parameter("bias", (n,))
    weight = kernel.t().reshape(n, -1, size, size)
    y = functional.conv2d(image, weight, bias, int(o.get("stride", 1)), int(o.get("padding", 0)))
    critic.image = list(y.shape[1:])
    return y.flatten(1)


def scale_and_bias(critic, d, o):
    if o.get("affine") == "no":
        return None, None
    scale = critic.parameter("scale", (d,), mean=1)
    return scale, None if o.get("bias") == "no" else critic.parameter("bias", (d,))


def batchnorm(critic, x, words):
    o = options(words)
    # A file has the state of all layers or of none.
    if any(line[0] == "batchrenorm" or "norm=spectral" in line for line in critic.lines):
        critic.statistics(x.shape[1])
    return functional.batch_norm(
        x, None, None, *scale_and_bias(critic, x.shape[1], o), training=True, eps=o.get("eps", 1e-3)
    )


def batchrenorm(critic, x, words):
    o = options(words)
    eps = o.get("eps", 1e-3)
    mean, var = critic.statistics(x.shape[1])
    centred = x - x.mean(0)
    width = (centred.square().mean(0) + eps).sqrt()
    running = (var + eps).sqrt()
    r = (width / running).detach().clamp(1 / o.get("rmax", 3), o.get("rmax", 3))
    d = ((x.mean(0) - mean) / running).detach().clamp(-o.get("dmax", 5), o.get("dmax", 5))
    scale, bias = scale_and_bias(critic, x.shape[1], o)
    return (centred / width * r + d) * scale + bias


def layernorm(critic, x, words):
    o = options(words)
    return functional.layer_norm(
        x, x.shape[1:], *scale_and_bias(critic, x.shape[1], o), o.get("eps", 1e-6)
    )


def groupnorm(critic, x, words):
    o = options(words)
    scale, bias = scale_and_bias(critic, x.shape[1], o)
    return functional.group_norm(x, int(o["groups"]), scale, bias, o.get("eps", 1e-6))


def rmsnorm(critic, x, words):
    scale = critic.parameter("scale", (x.shape[1],), mean=1)
    return x * torch.rsqrt((x * x).mean(1, keepdim=True) + options(words).get("eps", 1e-6)) * scale


def l2norm(critic, x, words):
    return functional.normalize(x, dim=1, eps=options(words).get("eps", 1e-8))


def avgl1norm(critic, x, words):
    eps = options(words).get("eps", 1e-8)
    return x / x.abs().mean(1, keepdim=True).clamp(min=eps)


def simnorm(critic, x, words):
    return functional.softmax(x.unflatten(1, (-1, int(options(words).get("dim", 8)))), 2).flatten(1)


def relu(critic, x, words):
    return functional.relu(x) + options(words).get("shift", 0)


def scaler(critic, x, words):
    o = options(words)
    return (
        x * critic.parameter("scaler", (x.shape[1],), mean=1) * o.get("init", 1) / o.get("scale", 1)
    )


def append(critic, x, words):
    return torch.cat([x, torch.full_like(x[:, :1], float(words[0]))], 1)


def columns(critic, x, words):
    return x[:, part(words[0])]


def concat(critic, x, words):
    return torch.cat([x, critic.input[:, part(words[0])]], 1)


def dropout(critic, x, words):
    return x * critic.input[:, part(words[0])] / (1 - options(words).get("rate", 0))


def dueling(critic, x, words):
    atoms = int(options(words).get("atoms", 1))
    value, *advantages = x.split(atoms, 1)
    advantages = torch.stack(advantages, 1)
    return (value[:, None] + advantages - advantages.mean(1, keepdim=True)).flatten(1)


def select(critic, x, words):
    u = critic.input[:, part(words[0])]
    return (u[:, :, None] * x.unflatten(1, (u.shape[1], -1))).sum(1)


def residual(critic, x, words, body):
    return x + body(x)


def lerp(critic, x, words, body):
    o, y = options(words), body(x)
    with critic.layer("lerp", words):
        a = critic.parameter("alpha", (x.shape[1],), mean=1) * o.get("init", 1) / o.get("scale", 1)
    return functional.normalize(x + a * (y - x), dim=1, eps=1e-8)


LAYERS = {
    "dense": dense,
    "conv2d": conv2d,
    "batchnorm": batchnorm,
    "batchrenorm": batchrenorm,
    "layernorm": layernorm,
    "groupnorm": groupnorm,
    "rmsnorm": rmsnorm,
    "l2norm": l2norm,
    "avgl1norm": avgl1norm,
    "simnorm": simnorm,
    "relu": relu,
    "scaler": scaler,
    "append": append,
    "input": columns,
    "slice": columns,
    "concat": concat,
    "dropout": dropout,
    "dueling": dueling,
    "select": select,
    "tanh": lambda critic, x, words: torch.tanh(x),
    "sigmoid": lambda critic, x, words: torch.sigmoid(x),
    "silu": plain("silu"),
    "elu": plain("elu"),
    "mish": plain("mish"),
    "softplus": plain("softplus"),
    "relu6": plain("relu6"),
    "leaky_relu": plain("leaky_relu"),
    "gelu": plain("gelu", approximate="tanh"),
}
UNCOUNTED = "input", "slice"
CONTAINERS = {"residual": residual, "lerp": lerp}


def quantile(f, t, kappa=1):
    """Equation 10 of Dabney et al., AAAI 2018: a sum over the quantiles, a mean over the
    targets."""
    q = (2 * torch.arange(f.shape[1], dtype=f.dtype) + 1) / (2 * f.shape[1])
    f, t = torch.broadcast_tensors(f[:, :, None], t[:, None, :])
    share = (q[None, :, None] - (t < f).double()).abs()
    return (share * functional.huber_loss(f, t, reduction="none", delta=kappa)).mean(2).sum(1)


LOSSES = {
    "mse": lambda f, t: 0.5 * functional.mse_loss(f, t, reduction="none").sum(1),
    "ce": lambda f, t, min, max: functional.cross_entropy(f, t, reduction="none"),
    "huber": lambda f, t, delta=1: functional.huber_loss(f, t, reduction="none", delta=delta).sum(
        1
    ),
    "quantile": quantile,
}


class Critic:
    """One critic. Its parameters are drawn when the first pass needs them; `w` holds them in
    canonical order, by their names in a checkpoint."""

    def __init__(self, text, seed):
        self.lines = [line.split() for line in text.strip().splitlines()]
        self.rng = np.random.default_rng(seed)
        self.w, self.running = {}, {}

    def parameter(self, name, shape, mean=0.0, spread=0.3):
        key = f"{self.number:02d}_{self.kind}/{name}"
        if key not in self.w:
            value = mean + spread * self.rng.standard_normal(shape)
            self.w[key] = torch.tensor(value, requires_grad=self.trainable)
        return self.w[key]

    def state(self, name, draw):
        """A state array of a layer, made by draw() when the first pass needs it."""
        key = f"{self.number:02d}_{self.kind}/{name}"
        if key not in self.running:
            self.running[key] = draw()
        return self.running[key]

    def statistics(self, d):
        """Running mean and variance of a layer, drawn like parameters."""
        draw = lambda: torch.tensor(0.3 + self.rng.random(d))  # noqa: E731
        return [self.state(name, draw) for name in ("mean", "var")]

    def layer(self, kind, words):
        """Names the parameters that are drawn inside; counts the layer."""
        return Numbered(self, kind, words)

    def block(self, x, at):
        """The layers from line `at` to the end of its block; x and the line behind it."""
        while at < len(self.lines) and self.lines[at][0] not in ("}", "loss"):
            kind, *words = self.lines[at]
            at += 1
            if words[-1:] != ["{"]:
                with self.layer(kind, words):
                    x = LAYERS[kind](self, x, words)
                continue
            body, end = at, []

            def run(x):
                y, last = self.block(x, body)
                if self.lines[last][0] == "loss":  # a head
                    self.heads.append((self.lines[last], y.shape[1]))
                    last += 1
                end.append(last + 1)
                return y

            if kind == "branch":
                outputs = [run(x)]
                while end[-1] < len(self.lines) and self.lines[end[-1]][0] == "branch":
                    body = end[-1] + 1
                    outputs.append(run(x))
                x = torch.cat(outputs, 1)
            elif kind == "repeat":
                for _ in range(int(words[0])):
                    x = run(x)
            else:
                x = CONTAINERS[kind](self, x, words, run)
            at = end[-1]
        return x, at

    def outputs(self, x):
        self.number, self.input, self.heads = -1, x, []
        return self.block(x, 0)[0]

    def parts(self, f, t):
        """Of every head, or of the one loss: its line, its columns of outputs and targets."""
        if not self.heads:
            return [(self.lines[-1], f, t)]
        widths = [width for _, width in self.heads]
        return zip([line for line, _ in self.heads], f.split(widths, 1), t.split(widths, 1))

    def losses(self, f, target):
        """The loss of every row."""
        total = 0
        for (_, kind, *words), outputs, targets in self.parts(f, target):
            o = options(words)
            total = total + o.pop("weight", 1) * LOSSES[kind](outputs, targets, **o)
        return total


class Numbered:
    def __init__(self, critic, kind, words):
        self.critic, self.kind = critic, kind
        self.trainable = "trainable=no" not in words

    def __enter__(self):
        self.critic.number += self.kind not in UNCOUNTED
        self.critic.kind = self.kind
        self.critic.trainable = self.trainable

    def __exit__(self, *error):
        pass
