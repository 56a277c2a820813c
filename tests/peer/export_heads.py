"""Critics of PyTorch with several branches, exported and analyzed: python3 export_heads.py ANALYZER FOLDER

Dueling heads, the choice of an action, heads with a loss each, targets of each critic, towers, masks. Compared as in
export_forms.py; for each, a wrong variant that looks similar has to be refused."""

import functools
import time

import h5py
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import kappascope
from export_common import Comparison, expect_refusal, main, stored
from export_forms import N, WIDTH, B, reference, views

OBS, ACTIONS, ATOMS = 4, 3, 5


def layers(**shapes):
    return nn.ModuleDict({name: nn.Linear(*shape) for name, shape in shapes.items()})


class Dueling(nn.Module):
    """Wang et al., ICML 2016; the last columns of the input are the action, as a one-hot vector."""

    arch = (
        "input [0:4]\ndense 8\nrelu\nbranch {\n  dense 8\n  relu\n  dense 1\n}\nbranch "
        "{\n  dense 8\n  tanh\n  dense 3\n}\ndueling\nselect input[4:7]\nloss huber\n"
    )

    def __init__(self, mean=lambda a: a.mean(-1, keepdim=True), choose=None):
        super().__init__()
        hidden = (WIDTH, WIDTH)
        self.l = layers(trunk=(OBS, WIDTH), v1=hidden, v2=(WIDTH, 1), a1=hidden, a2=(WIDTH, ACTIONS))
        self.mean, self.choose = mean, choose or (lambda q, action: (q * action).sum(-1))

    def forward(self, x):
        h = F.relu(self.l["trunk"](x[:, :OBS]))
        value = self.l["v2"](F.relu(self.l["v1"](h)))
        advantage = self.l["a2"](torch.tanh(self.l["a1"](h)))
        return self.choose(value + advantage - self.mean(advantage), x[:, OBS : OBS + ACTIONS])

    def canonical(self):
        return views(*self.l.values())


class Rainbow(nn.Module):
    """Hessel et al., AAAI 2018: dueling heads of distributions, and the number of the action."""

    arch = (
        "input [0:4]\ndense 8\nrelu\nbranch {\n  dense 5\n}\nbranch {\n  dense 15\n}\ndueling "
        "atoms=5\nselect input[4:7]\nloss ce min=-1 max=1\n"
    )

    def __init__(self, index=lambda action, q: action):
        super().__init__()
        self.l, self.index = layers(h=(OBS, WIDTH), v=(WIDTH, ATOMS), a=(WIDTH, ACTIONS * ATOMS)), index

    def forward(self, x):
        h = F.relu(self.l["h"](x[:, :OBS]))
        advantage = self.l["a"](h).view(-1, ACTIONS, ATOMS)
        q = self.l["v"](h).view(-1, 1, ATOMS) + (advantage - advantage.mean(1, keepdim=True))
        taken = self.index(x[:, OBS : OBS + ACTIONS].argmax(-1), q).view(-1, 1, 1)
        return q.gather(1, taken.expand(-1, 1, ATOMS)).squeeze(1)

    def canonical(self):
        return views(*self.l.values())


class AtomsFirst(Rainbow):
    """Outputs [rows, atoms, actions], as other programs have them: the same layers, with the columns in another
    order; the number of the action as an index."""

    def forward(self, x):
        h = F.relu(self.l["h"](x[:, :OBS]))
        advantage = self.l["a"](h).view(len(x), ATOMS, ACTIONS)
        q = self.l["v"](h).unsqueeze(-1) + advantage - advantage.mean(2, keepdim=True)
        return q[torch.arange(len(x)), :, x[:, OBS : OBS + ACTIONS].argmax(-1)]

    def canonical(self):
        a = self.l["a"]
        order = torch.arange(ATOMS * ACTIONS).view(ATOMS, ACTIONS).t().flatten()
        return [*views(self.l["h"], self.l["v"]), a.weight.t()[:, order], a.bias[order]]


class ByAction(nn.Module):
    """QR-DQN (Dabney et al., AAAI 2018) as its best-known version in PyTorch has it: [rows, quantiles, actions]."""

    arch = "input [0:4]\ndense 8\nrelu\ndense 15\nselect input[4:7]\nloss quantile\n"
    ways = (
        lambda z, a: (z * a[:, None, :]).sum(-1),
        lambda z, a: torch.einsum("bka,ba->bk", z, a),
        lambda z, a: z.gather(2, a.argmax(-1)[:, None, None].expand(-1, ATOMS, 1)).squeeze(2),
        lambda z, a: torch.take_along_dim(z, a.argmax(-1)[:, None, None], 2).squeeze(2),
        lambda z, a: (z @ a[:, :, None]).squeeze(-1),
        lambda z, a: torch.bmm(a[:, None], z.transpose(1, 2)).squeeze(1),
        lambda z, a: z.transpose(1, 2)[a.bool()],
    )

    def __init__(self, way):
        super().__init__()
        self.l, self.way = layers(h=(OBS, WIDTH), q=(WIDTH, ATOMS * ACTIONS)), way

    def forward(self, x):
        z = self.l["q"](F.relu(self.l["h"](x[:, :OBS]))).view(-1, ATOMS, ACTIONS)
        return self.way(z, x[:, OBS : OBS + ACTIONS])

    def canonical(self):
        q, order = self.l["q"], torch.arange(ATOMS * ACTIONS).view(ATOMS, ACTIONS).t().flatten()
        return [*views(self.l["h"]), q.weight.t()[:, order], q.bias[order]]


class Several(nn.Module):
    """All values of a state, whose squared errors have a mean."""

    arch = "dense 8\nrelu\ndense 3\nloss {}\n"

    def __init__(self, line):
        super().__init__()
        self.l, self.arch = layers(h=(OBS, WIDTH), q=(WIDTH, 3)), self.arch.format(line)

    def forward(self, x):
        return self.l["q"](F.relu(self.l["h"](x[:, :OBS])))

    def canonical(self):
        return views(*self.l.values())


class Heads(nn.Module):
    """A value and a distribution of the same features, each with a loss."""

    arch = (
        "dense 8\nsilu\nbranch {\n  dense 1\n  loss mse weight=0.5\n}\nbranch "
        "{\n  dense 8\n  relu\n  dense 5\n  loss ce min=0 max=1\n}\n"
    )

    def __init__(self):
        super().__init__()
        self.l = layers(h=(OBS, WIDTH), value=(WIDTH, 1), h2=(WIDTH, WIDTH), logits=(WIDTH, ATOMS))

    def forward(self, x):
        h = F.silu(self.l["h"](x[:, :OBS]))
        return self.l["value"](h), self.l["logits"](F.relu(self.l["h2"](h)))

    def canonical(self):
        return views(*self.l.values())


class Trunk(nn.Module):
    """Two critics that share their first layers, and so become heads with the same loss each."""

    arch = (
        "input [0:4]\ndense 8\nrelu\nconcat input[4:7]\nbranch {\n  dense 1\n  loss mse\n}\nbranch {\n  dense 1\n"
        "  loss mse\n}\n"
    )

    def __init__(self, together=True):
        super().__init__()
        self.l, self.together = layers(h=(OBS, WIDTH), q1=(WIDTH + ACTIONS, 1), q2=(WIDTH + ACTIONS, 1)), together

    def features(self, x):
        return torch.cat([F.relu(self.l["h"](x[:, :OBS])), x[:, OBS : OBS + ACTIONS]], -1)

    def forward(self, x):
        h = self.features(x) if self.together else None
        return tuple(self.l[q](self.features(x) if h is None else h).squeeze(-1) for q in ("q1", "q2"))

    def canonical(self):
        return views(*self.l.values())


class Apart(Trunk):
    """The same, as modules that have one encoder."""

    class Critic(nn.Module):
        def __init__(self, encoder, head):
            super().__init__()
            self.encoder, self.head = encoder, head

        def forward(self, x):
            h = F.relu(self.encoder(x[:, :OBS]))
            return self.head(torch.cat([h, x[:, OBS : OBS + ACTIONS]], -1))[:, 0]

    def critics(self):
        return [self.Critic(self.l["h"], self.l[q]) for q in ("q1", "q2")]


class Injected(nn.Module):
    """Actions that enter inside of a residual sum, and so are joined there."""

    arch = (
        "input [0:4]\ndense 8\nresidual {\n  concat input[4:7]\n  branch {\n    slice [0:8]\n    dense 8\n  }\n  branch {\n"
        "    slice [8:11]\n    dense 8\n    tanh\n    dense 8\n  }\n  dense 8 bias=no trainable=no\n  relu\n}\n"
        "branch {\n  slice [0:8]\n}\nbranch {\n  concat input[4:7]\n  branch {\n    slice [8:11]\n    dense 5\n  }\n  branch "
        "{\n    slice [0:8]\n    dense 5\n  }\n  dense 7\n}\ndense 1\nloss mse\n"
    )

    def __init__(self):
        super().__init__()
        self.l = layers(
            o=(OBS, 8), h=(8, 8), a=(ACTIONS, 8), b=(8, 8), c=(ACTIONS, 5), d=(8, 5), e=(10, 7), q=(15, 1)
        )

    def forward(self, x):
        l, a = self.l, x[:, OBS : OBS + ACTIONS]
        h = l["o"](x[:, :OBS])
        h = h + F.relu(l["h"](h) + l["b"](torch.tanh(l["a"](a))))
        late = l["e"](torch.cat([l["c"](a), l["d"](h)], -1))
        return l["q"](torch.cat([h, late], -1))

    def canonical(self):
        return views(*self.l.values())


class Towers(nn.Module):
    """Observations and actions have layers of their own; a residual sum of branches; inputs in front of features."""

    arch = (
        "branch {\n  slice [0:4]\n  dense 5\n  tanh\n}\nbranch "
        "{\n  slice [4:7]\n  dense 3\n}\nresidual {\n"
        "  branch {\n    dense 3\n    relu\n  }\n  branch "
        "{\n    dense 5\n  }\n}\nconcat input[4:7]\n"
        "branch {\n  slice [8:11]\n}\nbranch {\n  slice [0:8]\n}\ndense 1\nloss mse\n"
    )

    def __init__(self, join=lambda parts: torch.cat(parts, -1)):
        super().__init__()
        self.l = layers(obs=(OBS, 5), action=(ACTIONS, 3), left=(8, 3), right=(8, 5), head=(11, 1))
        self.join = join

    def forward(self, x):
        obs, action = x[:, :OBS], x[:, OBS : OBS + ACTIONS]
        h = torch.cat([torch.tanh(self.l["obs"](obs)), self.l["action"](action)], -1)
        h = h + self.join([F.relu(self.l["left"](h)), self.l["right"](h)])
        return self.l["head"](torch.cat([action, h], -1))

    def canonical(self):
        return views(*self.l.values())


class Pieces(nn.Module):
    """Operations in place, constant factors, a stored mask of dropout, a norm without parameters,
    some of the features, dense connections, mish spelled out."""

    arch = (
        "input [0:4]\ndense 8\nrelu\nresidual {\n  dense 8\n  scaler init=0.1 trainable=no\n}\n"
        "dropout input[4:12]\nscaler init=1.25 trainable=no\nrmsnorm eps=1e-06 trainable=no\n"
        "slice [1:7]\nbranch {\n  slice [0:6]\n}\nbranch {\n  dense 2\n  mish\n}\ndense 1\nloss "
        "mse\n"
    )

    def __init__(self, scale=lambda x, y: x + 0.1 * y):
        super().__init__()
        self.l, self.scale = layers(h=(OBS, WIDTH), f=(WIDTH, WIDTH), g=(6, 2), head=(8, 1)), scale

    def forward(self, x):
        h = self.l["h"](x[:, :OBS])
        positive = F.relu(h, inplace=True)
        h = self.scale(h, self.l["f"](positive))
        h = h * x[:, OBS : OBS + WIDTH] / 0.8
        h = (h * torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-6))[:, 1:7]
        g = self.l["g"](h)
        return self.l["head"](torch.cat([h, g * F.softplus(g).tanh()], -1))

    def canonical(self):
        return views(*self.l.values())


class Quantiles(nn.Module):
    """Two critics with targets of their own, more than there are quantiles (TQC: Kuznetsov et al., ICML 2020)."""

    arch = "dense 8\nelu\ndense 4\nloss quantile weight=0.25\n"

    def __init__(self, arrange=lambda parts, x: tuple(parts)):
        super().__init__()
        self.q = nn.ModuleList([layers(h=(OBS, WIDTH), q=(WIDTH, 4)) for _ in range(2)])
        self.arrange = arrange

    def forward(self, x):
        return self.arrange([q["q"](F.elu(q["h"](x[:, :OBS]))) for q in self.q], x)

    def canonical(self):
        return [p for q in self.q for p in views(*q.values())]


def cross_entropy(f, t):
    return -(t * torch.log_softmax(f, -1)).sum(-1).mean()


def quantile(f, t):
    """A mean over quantiles and targets, as TQC has it."""
    k = f.shape[1]
    tau = (torch.arange(k, dtype=f.dtype) + 0.5) / k
    u = t[:, None, :] - f[:, :, None]
    huber = torch.where(u.abs() <= 1, 0.5 * u**2, u.abs() - 0.5)
    return ((tau[:, None] - (u < 0).to(f.dtype)).abs() * huber).mean()


def quantiles_of_two(f, t):
    return sum(quantile(f[e], t[:, e]) for e in range(2))


def cases():
    """(module, loss given to save, targets given to save, loss of the reference, its targets)"""
    value = torch.randn(N, B)
    atoms = torch.softmax(torch.randn(N, B, ATOMS), -1)
    samples = torch.randn(N, B, 2, 7)
    yield Dueling(), "huber", value, F.smooth_l1_loss, value
    for kind in Rainbow, AtomsFirst:
        yield kind(), "ce min=-1 max=1", atoms, cross_entropy, atoms
    for way in ByAction.ways:
        yield ByAction(way), "quantile", samples[:, :, 0], lambda f, t: ATOMS * quantile(f, t), samples[:, :, 0]
    yield (
        Heads(),
        ["mse weight=0.5", "ce min=0 max=1"],
        [value, atoms],
        lambda f, t: 0.25 * F.mse_loss(f[0][:, 0], t[:, 0]) + cross_entropy(f[1], t[:, 1:]),
        torch.cat([value[..., None], atoms], -1),
    )
    values = torch.randn(N, B, 3)
    yield Several("mse weight=2"), F.mse_loss, values, F.mse_loss, values
    yield Several("huber delta=1.0"), F.huber_loss, values, F.huber_loss, values
    yield Several("mse"), "mse", values, lambda f, t: 0.5 * F.mse_loss(f, t), values
    own = torch.randn(N, B, 2, 1)
    for kind in Trunk, lambda: Trunk(False), Apart:
        yield kind(), "mse", value, lambda f, t: sum(0.5 * F.mse_loss(one, t) for one in f), value
    yield Trunk(), "mse", own, lambda f, t: sum(0.5 * F.mse_loss(f[e], t[:, e, 0]) for e in range(2)), own
    yield Injected(), "mse", value, lambda f, t: 0.5 * F.mse_loss(f[:, 0], t), value
    yield Towers(), "mse", value, lambda f, t: 0.5 * F.mse_loss(f[:, 0], t), value
    yield Pieces(), "mse", value, lambda f, t: 0.5 * F.mse_loss(f[:, 0], t), value
    yield Quantiles(), "quantile weight=0.25", samples, quantiles_of_two, samples


# What forward may return of two critics, and what it may not: critics, rows or outputs in another order.
ARRANGED = (
    lambda parts, x: {"q1": parts[0], "q2": [parts[1].unsqueeze(0)]},
    lambda parts, x: torch.stack(parts),
    lambda parts, x: torch.stack(parts, 1),
    lambda parts, x: torch.stack(parts, -1),
    lambda parts, x: torch.cat(parts),
    lambda parts, x: torch.cat(parts, -1).view(2, B // 2, -1),
    lambda parts, x: torch.stack(parts).permute(2, 1, 0).float(),
    lambda parts, x: torch.cat(parts, -1).flatten()[torch.arange(8 * B)],
)
REORDERED = (
    lambda parts, x: torch.stack(parts)[[1, 0]],
    lambda parts, x: torch.stack(parts).view(B, 2, 4),
    lambda parts, x: torch.stack(parts)[:, x[:, 0].argsort()],
    lambda parts, x: torch.cat(parts, -1).view(B, 4, 2),
    lambda parts, x: torch.stack(parts)[:, :4],
    lambda parts, x: torch.stack([torch.stack(parts), torch.stack(parts)], 1),
    lambda parts, x: parts[0].view(2, -1, 4).transpose(0, 1),
)


def alike(critics):
    """The critics with outputs that are all equal: only their places tell them apart."""
    with torch.no_grad():
        for p in critics.q.parameters():
            p.zero_()
    return critics


def interleave(logits):
    return logits[:, :4].view(-1, 2, 2).transpose(1, 2).reshape(-1, 4)


class Returns(nn.Module):
    """What forward returns, as a function of the last layer's outputs."""

    def __init__(self, function):
        super().__init__()
        self.q, self.function = nn.Linear(OBS, 4), function

    def forward(self, x):
        return self.function(self.q(x[:, :OBS]))


def mse_loss(f, t):  # not PyTorch's
    return ((f - t) ** 2).sum()


LINE = r"export_heads\.py:\d+: "  # what a refusal of one line of forward begins with


def wrong_actions(samples):
    """(arguments, expressions) of advantages and choices of an action that are no line."""
    ce = dict(loss="ce min=-1 max=1", targets=torch.softmax(torch.randn(N, B, ATOMS), -1))
    by_action = dict(loss="quantile", targets=samples[:, :, 0])
    return [
        (dict(critics=Dueling(lambda a: a.mean())), [LINE, "over all entries", r"mean\(-1, keepdim=True\)"]),
        (dict(critics=Dueling(lambda a: a.max(-1, keepdim=True)[0])), [LINE, "mean advantage"]),
        (dict(critics=Dueling(lambda a: 0.5 * a.mean(-1, keepdim=True))), [LINE, "mean advantage"]),
        (dict(critics=Dueling(choose=lambda q, action: (q * action).mean(-1))), [LINE, "Way out"]),
        (dict(critics=Dueling(choose=lambda q, action: (q * action.cumsum(0)).sum(0))), [LINE, "one_hot"]),
        (dict(critics=Dueling(choose=lambda q, action: q.max(-1)[0])), [LINE, "Way out"]),
        ({**ce, "critics": Rainbow(lambda action, q: q.sum(-1).argmax(-1))}, [LINE, "inputs alone"]),
        (
            {**by_action, "critics": ByAction(lambda z, a: (z[:, :4] * a[:, None]).sum(-1))},
            [LINE, r"\[rows, actions, outputs\]"],
        ),
        (
            {**by_action, "critics": ByAction(lambda z, a: torch.softmax(z, 1)[torch.arange(len(z)), :, a.argmax(-1)])},
            [LINE, "return the logits"],
        ),
    ]


def wrong_outputs(x, samples):
    """(arguments, expressions) of outputs that are cut or in another order."""
    ce, own = dict(loss="ce min=0 max=1"), dict(loss="quantile", targets=samples)
    atoms, two = torch.softmax(torch.randn(N, B, 4), -1), torch.full((N, B, 2), 0.5)
    rising = x.clone()
    rising[0, :, 0] = torch.arange(B)
    by_rows = Quantiles(lambda parts, x: torch.stack(parts)[:, x[:, 0].argsort()])
    reordered, untraced = "cuts or reorders", "argument of type: <class 'range'>"  # by PyTorch 1.13
    return [
        ({**ce, "critics": Returns(interleave), "targets": atoms}, [LINE, reordered]),
        ({**ce, "critics": Returns(lambda f: f[:, ::2]), "targets": two}, [LINE, reordered]),
        *[
            ({**own, "critics": change(Quantiles(one))}, [LINE, reordered])
            for one in REORDERED
            for change in (alike, lambda critics: critics)
        ],
        ({**own, "critics": by_rows, "inputs": rising}, ["in some minibatches"]),
        (dict(critics=Returns(lambda f: f[:, :1][range(B - 1, -1, -1)])), [LINE, f"{reordered}|{untraced}"]),
        (
            {**ce, "critics": Returns(lambda f: (f, None)), "targets": atoms},
            ["outputs of its critics alone", "None"],
        ),
    ]


def wrong(x):
    """(arguments, expressions) of exports that would be another critic."""
    value, samples = torch.randn(N, B), torch.randn(N, B, 2, 7)
    targets = [value, torch.softmax(torch.randn(N, B, ATOMS), -1)]
    heads = dict(critics=Heads(), loss=["mse", "ce min=0 max=1"], targets=targets)
    three = samples[:, :, :1].expand(-1, -1, 3, -1)
    twice = Towers(lambda parts: torch.cat([parts[0] + parts[1][:, :3], parts[1]], -1))
    product = Pieces(lambda x, y: torch.add(x, y, out=None, alpha=0.1) * torch.sin(y))
    table = [
        *wrong_actions(samples),
        *wrong_outputs(x, samples),
        ({**heads, "loss": ["mse", "ce min=0 max=1", "mse"]}, ["3 outputs", "found 2"]),
        ({**heads, "targets": value}, ["list with the targets of each of 2 heads"]),
        ({**heads, "targets": targets[::-1]}, ["loss mse with 1 outputs"]),
        ({**heads, "loss": "mse"}, ["same architecture"]),
        (
            dict(critics=Quantiles(), loss="quantile", targets=three),
            [r"\[N, B, E, T\]", "E = 2", r"found \[2, 16, 3, 7\]"],
        ),
        (dict(critics=twice), [LINE, r"right\.weight is used twice"]),
        (dict(critics=product), [LINE, "product"]),
        (
            dict(critics=Returns(lambda f: f[:, :1]), loss=mse_loss),
            ["mse weight=2", "from the function that is given", "check="],
        ),
        (dict(critics=Towers(), attributes={"version": 7}), ["attributes: version"]),
        (dict(critics=Towers(), inputs=x[..., :5]), [LINE, "forward fails", r"x \[16, 5\]"]),
    ]
    return [({"inputs": x, "targets": value, "loss": "mse", **arguments}, words) for arguments, words in table]


def compare(analyzer, folder):
    torch.manual_seed(6)
    torch.set_num_threads(1)
    comparison = Comparison(analyzer, folder, f"PyTorch {torch.__version__}, several branches")
    taken = F.one_hot(torch.randint(ACTIONS, (N, B)), ACTIONS).float()
    mask = (torch.rand(N, B, OBS + WIDTH - ACTIONS) < 0.8).float()
    x = torch.cat([torch.randn(N, B, OBS), taken, mask], -1)
    for module, line, given, loss, targets in cases():
        name = type(module).__name__
        start, path = time.time(), f"{folder}/{name}.h5"
        with torch.no_grad():  # which the caller may well have set
            critics = module.critics() if hasattr(module, "critics") else module
            arch = kappascope.save(path, critics=critics, inputs=x, targets=given, loss=line)
        comparison.expect(arch == module.arch, f"{name}: expected the description\n{module.arch}found\n{arch}")
        comparison.add(name, path, 1, start, functools.partial(reference, module, loss, x, targets))
    targets, expected = torch.randn(N, B, 2, 7), None
    for number, arrange in enumerate((lambda parts, x: parts, *ARRANGED)):
        torch.manual_seed(7)
        kappascope.save(f"{folder}/arranged.h5", Quantiles(arrange), x, targets, "quantile")
        with h5py.File(f"{folder}/arranged.h5") as file:
            found = [*file["batch/loss"], *file["batch/gradient_norm"], *stored(file.filename, "critic")]
        expected = expected or found
        comparison.expect(np.allclose(found, expected), f"arrangement {number}: expected the first one's losses")
    refusals = wrong(x)
    for number, (call, words) in enumerate(refusals):
        failure = expect_refusal(folder, call, words, f"variant {number}")
        comparison.expect(not failure, failure)
    print(f"{len(refusals)} wrong variants that are to be refused")
    comparison.end()


if __name__ == "__main__":
    main(compare)
