"""Eigenvectors of exported critics as PyTorch's parameters: python3 export_vectors.py ANALYZER FOLDER

Along each v the change of PyTorch's gradient must be lambda v. (PyTorch's second derivatives of weight_norm
lack a term.)"""

import torch
from torch import nn

import h5py
import kappascope
from export_common import analyze, main

ROWS, OBS, ACTIONS = 32, 5, 2
STEP = 1e-6


class Critic(nn.Module):
    """Square layers whose order in forward is another one than that of the parameters."""

    def __init__(self):
        super().__init__()
        self.out, self.norm = nn.Linear(7, 1), nn.BatchNorm1d(7)
        self.second, self.first = nn.Linear(7, 7), nn.Linear(7, 7)
        self.frozen = nn.Linear(7, 7).requires_grad_(False)

    def forward(self, obs, action):
        x = torch.relu(self.first(torch.cat([obs, action], -1)))
        return self.out(torch.tanh(self.frozen(self.norm(self.second(x)))))


class Heads(nn.Module):
    """Two critics that share a layer, which a wrapper has."""

    def __init__(self):
        super().__init__()
        self.q2, self.q1, self.trunk = nn.Linear(6, 1), nn.Linear(6, 1), nn.DataParallel(nn.Linear(7, 6))

    def forward(self, x):
        x = torch.relu(self.trunk(x))
        return self.q1(x), self.q2(x)


class Stacked(nn.Module):
    """An ensemble of three in one module, with parameters [E, in, out]."""

    def __init__(self):
        super().__init__()
        self.w1, self.b1 = nn.Parameter(torch.randn(3, 7, 6)), nn.Parameter(torch.randn(3, 1, 6))
        self.w2, self.b2 = nn.Parameter(torch.randn(3, 6, 1)), nn.Parameter(torch.randn(3, 1, 1))

    def forward(self, x):
        x = torch.tanh(torch.baddbmm(self.b1, x.expand(3, -1, -1), self.w1))
        return torch.baddbmm(self.b2, x, self.w2)


# PyTorch before 2.1 has the older form alone.
weight_norm = getattr(nn.utils.parametrizations, "weight_norm", nn.utils.weight_norm)


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(weight_norm(nn.Linear(7, 6)), nn.LayerNorm(6), nn.ReLU(), nn.Linear(6, 1))

    def forward(self, x):
        return self.net(x)


def outputs_of(critics, inputs):
    """The outputs of all critics."""
    for critic in critics:
        found = critic(*inputs)
        yield from found if isinstance(found, tuple) or found.dim() == 3 else [found]


def residual(critics, inputs, targets, vector, value):
    """|A v - value v| / |value|, with A v from a central difference of PyTorch's gradient, and |v|."""
    named = [
        (p, vector[i][name])
        for i, critic in enumerate(critics)
        for name, p in critic.named_parameters()
        if p.requires_grad
    ]

    def gradient_at(step):
        with torch.no_grad():
            for p, v in named:
                p.add_(step * v)
        loss = sum(0.5 * ((f - targets) ** 2).mean() for f in outputs_of(critics, inputs))
        found = torch.autograd.grad(loss, [p for p, _ in named])
        with torch.no_grad():
            for p, v in named:
                p.sub_(step * v)
        return found

    sides = gradient_at(STEP), gradient_at(-STEP)
    images = [(a - b) / (2 * STEP) for a, b in zip(*sides)]
    off = sum(((a - value * v) ** 2).sum() for a, (_, v) in zip(images, named)) ** 0.5
    return float(off) / abs(value), float(sum((v * v).sum() for _, v in named)) ** 0.5


def failures_of(name, critics, inputs, targets, files, analyzer):
    """What is wrong with the eigenvectors of one case. files: the checkpoint's and that of the vectors."""
    path, top = files
    modules = [m.double() for m in (critics if isinstance(critics, list) else [critics])]
    kappascope.save(path, critics=critics, inputs=inputs, targets=targets, loss="mse")
    options = "--eigenvectors 3 --tolerance 1e-7 --precision f64 --output".split()
    analyze(analyzer, *options, top, path)
    with h5py.File(top) as file:
        values = file["eigenvalue"][:]
    found = kappascope.load_vectors(top, critics)
    given = kappascope.load_vectors(top, critics, inputs)
    for vector, again, value in zip(found, given, values):
        parts = vector if isinstance(critics, list) else [vector]
        others = again if isinstance(critics, list) else [again]
        same = all(torch.equal(a[k], b[k]) for a, b in zip(parts, others) for k in a)
        frozen = all(not t.any() for part in parts for k, t in part.items() if k.startswith("frozen"))
        off, norm = residual(modules, inputs, targets, parts, float(value))
        print(f"{name}: eigenvalue {value:.6g}, relative residual {off:.1e}, norm 1 + {norm - 1:.0e}")
        if not (off < 1e-6 and abs(norm - 1) < 1e-9 and same and frozen and len(found) == len(values)):
            yield name
        for module, part in zip(modules, parts):
            if set(part) != {k for k, _ in module.named_parameters()}:
                yield f"{name}: names"


def compare(analyzer, folder):
    torch.manual_seed(0)
    obs, action = torch.randn(ROWS, OBS).double(), torch.randn(ROWS, ACTIONS).double()
    targets, both = torch.randn(ROWS, 1).double(), torch.cat([obs, action], 1)
    path, top = f"{folder}/critic.h5", f"{folder}/top.h5"
    failures = []
    for name, critics, inputs in (
        ("two critics", [Critic(), Critic()], (obs, action)),
        ("one critic", Critic(), (obs, action)),
        ("heads", Heads(), (both,)),
        ("stacked", Stacked(), (both,)),
        ("weight norm", [Normed()], (both,)),
    ):
        failures += failures_of(name, critics, inputs, targets, (path, top), analyzer)
    for file, critics, words in (
        (top, Critic(), "top.h5: expected vectors over the parameters of these critics"),
        (path, Normed(), "critic.h5: expected a file of vectors (kappascope-vector), found"),
        (f"{folder}/none.h5", Normed(), "none.h5: expected a file of vectors, which `kappascope analyze`"),
        (top, [Normed(), Normed()], "found 73 numbers over 00_dense/v [7, 6]"),
    ):
        message = refused(file, critics)
        failures += [] if words in message else [f"expected {words!r}, found {message!r}"]
    for failure in failures:
        print(f"FAILED: {failure}")
    if failures:
        raise SystemExit(1)


def refused(path, critics):
    try:
        kappascope.load_vectors(path, critics)
    except kappascope.Refused as error:
        return str(error)
    return "not refused"


if __name__ == "__main__":
    main(compare)
