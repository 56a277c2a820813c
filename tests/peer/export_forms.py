"""Other ways to write a critic in PyTorch, exported and analyzed: python3 export_forms.py ANALYZER
FOLDER

Norms, products and ensembles written by hand, compared as in export_torch.py. `canonical` lists
views of a module's parameters in the order of the file format, critic by critic."""

import copy
import functools
import time

import torch
from torch import nn
from torch.nn import functional as F

import kappascope
from export_common import Comparison, main
from export_critics_torch import BatchRenorm1d

N, B, IN, WIDTH, E = 2, 16, 6, 8, 3


def parameter(*shape):
    return nn.Parameter(torch.randn(*shape) / shape[-1] ** 0.5)


def views(*linear):
    """Kernel and bias of each, as the file has them."""
    return [p for layer in linear for p in (layer.weight.t(), layer.bias)]


class ByHand(nn.Module):
    """Observations are normalized; layer norm, RMS norm, projection on the sphere and silu are
    spelled out."""

    arch = (
        "dense 8\nlayernorm eps=1e-05\nsilu\ndense 8 bias=no\nrmsnorm eps=1e-06\nresidual "
        "{\n  dense 8\n  relu\n}\nl2norm eps=1e-08\navgl1norm eps=1e-08\nlayernorm eps=1e-05 affine=no\nscaler "
        "init=0.5\ndense 1\nloss mse\n"
    )

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.randn(IN))
        self.register_buffer("std", 1 + torch.rand(IN))
        self.fc1, self.scale, self.bias = nn.Linear(IN, WIDTH), parameter(WIDTH), parameter(WIDTH)
        self.w, self.g = parameter(WIDTH, WIDTH), parameter(WIDTH)
        self.fc3, self.s, self.fc4 = nn.Linear(WIDTH, WIDTH), parameter(WIDTH), nn.Linear(WIDTH, 1)

    def forward(self, obs):
        x = self.fc1(((obs - self.mean) / self.std).clamp(-2, 2))
        centered = x - x.mean(-1, keepdim=True)
        x = centered / torch.sqrt(centered.pow(2).mean(-1, keepdim=True) + 1e-5)
        x = x * self.scale + self.bias
        x = x * torch.sigmoid(x)
        x = x @ self.w
        x = self.g * (x * torch.rsqrt((x**2).mean(dim=-1, keepdim=True) + 1e-6))
        x = torch.clamp(F.linear(x, self.fc3.weight, self.fc3.bias), min=0) + x
        x = x / x.norm(dim=-1, keepdim=True).clamp(min=1e-8)
        x = x / x.abs().mean(-1, keepdim=True).clamp(min=1e-8)
        x = (x - x.mean(1, keepdim=True)) / (x.var(1, unbiased=False, keepdim=True) + 1e-5).sqrt()
        return self.fc4(x * self.s * 0.5)

    def canonical(self):
        own = [*views(self.fc1), self.scale, self.bias, self.w, self.g]
        return [*own, *views(self.fc3), self.s, *views(self.fc4)]


class Rows(nn.Module):
    """Batch normalization by hand and as a function, and the other activations."""

    arch = (
        "dense 8\nbatchnorm eps=0.001\ngelu\ndense 8\nbatchnorm eps=1e-05 "
        "momentum=0.9\ntanh\ndense 8\nrelu shift=0.5\ndense 8\nmish\nsimnorm dim=8\ndense 1\nloss huber delta=0.5 "
        "weight=3\n"
    )

    def __init__(self):
        super().__init__()
        sizes = (IN, WIDTH, WIDTH, WIDTH, WIDTH, 1)
        self.layers = nn.ModuleList([nn.Linear(*size) for size in zip(sizes, sizes[1:])])
        self.scales = nn.ParameterList([parameter(WIDTH) for _ in range(2)])
        self.biases = nn.ParameterList([parameter(WIDTH) for _ in range(2)])

    def forward(self, x):
        x = self.layers[0](x)
        x = (x - x.mean(0)) / torch.sqrt(x.var(0, unbiased=False) + 1e-3)
        x = x * self.scales[0] + self.biases[0]
        x = self.layers[1](F.gelu(x, approximate="tanh"))
        x = F.batch_norm(x, None, None, self.scales[1], self.biases[1], True, 0.1, 1e-5).tanh()
        x = F.softmax(F.mish(self.layers[3](self.layers[2](x).relu() + 0.5)), dim=1)
        return {"q": self.layers[4](x).squeeze(-1)}

    def canonical(self):
        normed = zip(self.layers, self.scales, self.biases)
        own = [p for layer, *norm in normed for p in (*views(layer), *norm)]
        return own + views(*self.layers[2:])


class Stacked(nn.Module):
    """An ensemble with parameters [E, in, out], by einsum and baddbmm; the critics are the last
    dimension of the output."""

    arch = "dense 8\nrelu\ndense 8\nlayernorm eps=1e-05\nelu\nsimnorm dim=8\ndense 1 bias=no\nloss mse weight=2\n"

    def __init__(self):
        super().__init__()
        self.w1, self.w2 = parameter(E, IN, WIDTH), parameter(E, WIDTH, WIDTH)
        self.b1, self.b2, self.scale, self.bias, self.w3 = (parameter(E, 1, WIDTH) for _ in range(5))

    def forward(self, x):
        x = torch.relu(torch.einsum("bi,eio->ebo", x, self.w1) + self.b1)
        x = torch.baddbmm(self.b2, x, self.w2)
        x = F.elu(F.layer_norm(x, [WIDTH]) * self.scale + self.bias).softmax(-1)
        return torch.matmul(x, self.w3.transpose(1, 2)).squeeze(-1).t()

    def canonical(self):
        stacks = (self.w1, self.b1, self.w2, self.b2, self.scale, self.bias, self.w3.transpose(1, 2))
        return [stack[e] for e in range(E) for stack in stacks]


class Loop(nn.Module):
    """An ensemble in a loop over slices of one parameter, stacked; the input is copied for every
    member."""

    arch = "append 2\ndense 8 bias=no\nlerp init=2 {\n  dense 8\n}\ndense 3\nloss ce min=0 max=1\n"

    def __init__(self):
        super().__init__()
        self.w = parameter(2, WIDTH, IN + 1)
        self.inner = nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(2)])
        self.alpha = parameter(2, WIDTH)
        self.heads = nn.ModuleList([nn.Linear(WIDTH, 3) for _ in range(2)])

    def forward(self, x):
        return torch.stack([self.one(F.pad(x, (0, 1), value=2.0), e) for e in range(2)], 1)

    def one(self, x, e):
        x = F.linear(x, self.w[e])
        x = torch.lerp(x, self.inner[e](x), 2 * self.alpha[e])
        return self.heads[e](F.normalize(x, dim=-1))

    def canonical(self):
        members = zip(self.w, self.inner, self.alpha, self.heads)
        return [p for w, inner, alpha, head in members for p in (w.t(), *views(inner), alpha, *views(head))]


class Joined(nn.Module):
    """The observations enter once more behind each layer (D2RL: Sinha et al., arXiv 2010.09163),
    the actions late; a frozen layer; the other activations and norms; rows have weights."""

    arch = (
        "input [0:4]\ndense 8\nleaky_relu negative_slope=0.2\nconcat input[0:4]\nconcat "
        "input[4:6]\ndense 8 trainable=no\nsigmoid\nbatchnorm eps=1e-05 momentum=0.9 "
        "affine=no\ndense 8\nlayernorm eps=1e-05 bias=no\ngelu approximate=none\nconcat "
        "input[0:4]\ndense 8\nsoftplus\nrelu6\ndense 1\nloss mse\n"
    )

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(4, WIDTH), nn.Linear(WIDTH + IN, WIDTH)
        self.fc3, self.scale = nn.Linear(WIDTH, WIDTH), parameter(WIDTH)
        self.fc4, self.fc5 = nn.Linear(WIDTH + 4, WIDTH), nn.Linear(WIDTH, 1)
        self.norm, self.leaky = nn.BatchNorm1d(WIDTH, affine=False), nn.LeakyReLU(0.2)
        self.fc2.requires_grad_(False)

    def forward(self, x):
        assert isinstance(x, torch.Tensor)  # as Stable-Baselines3 asks
        obs, action = 2 * x[:, :4], x[:, 4:]
        h = torch.sigmoid(self.fc2(torch.cat([self.leaky(self.fc1(obs)), obs, action], -1)))
        h = F.gelu(F.layer_norm(self.fc3(self.norm(h)), (WIDTH,), self.scale))
        return self.fc5(F.relu6(F.softplus(self.fc4(torch.cat([h, obs], 1)))))

    def canonical(self):
        return [*views(self.fc1, self.fc3), self.scale, *views(self.fc4, self.fc5)]


class Sums(nn.Module):
    """Sums of branches, as the first DDPGs have them, with one bias; differences; factors; a sum of several by
    sum(), with an input; a value for all features; a critic with a frozen prior."""

    arch = (
        "input [0:6]\nbranch {\n  slice [0:4]\n  dense 8\n  relu\n  dense 8\n}\nbranch {\n  slice [4:6]\n  dense 8 bias=no\n}\n"
        "dense 8 bias=no trainable=no\nrelu\nbranch {\n  branch {\n    dense 6\n  }\n  branch {\n    dense 1\n  }\n"
        "  dense 6 bias=no trainable=no\n}\nbranch {\n  tanh\n  dense 6\n}\ndense 6 bias=no trainable=no\n"
        "concat input[6:12]\ndense 6 bias=no trainable=no\nresidual {\n  branch {\n    dense 6\n    elu\n  }\n"
        "  branch {\n    dense 6\n  }\n  dense 6 bias=no trainable=no\n  scaler init=-0.5 trainable=no\n}\n"
        "branch {\n  dense 1\n}\nbranch {\n  dense 1 trainable=no\n}\ndense 1 bias=no trainable=no\nloss mse\n"
    )

    def __init__(self):
        super().__init__()
        sizes = dict(s1=(4, 8), s2=(8, 8), a=(2, 8), p=(8, 6), v=(8, 1), r=(8, 6), g=(6, 6), f=(6, 6), q=(6, 1), prior=(6, 1))
        self.l = nn.ModuleDict({name: nn.Linear(*size, bias=name not in ("s2", "a")) for name, size in sizes.items()})
        self.b = parameter(8)
        self.l["prior"].requires_grad_(False)

    def forward(self, x):
        l = self.l
        h = F.relu(l["s2"](F.relu(l["s1"](x[:, :4]))) + l["a"](x[:, 4:]) + self.b)
        h = sum([l["p"](h), l["v"](h), -0.25 * l["r"](h.tanh()), torch.sin(x)])
        h = torch.add(h, 0 - torch.sub(F.elu(l["g"](h)), l["f"](h), alpha=2), alpha=0.5)
        return torch.stack([l["q"](h), 3 * l["prior"](h)]).mean(0).squeeze(-1)

    def canonical(self):
        own = {name: views(m) for name, m in self.l.items()}
        own |= {"s2": [self.l["s2"].weight.t(), self.b], "a": [self.l["a"].weight.t()], "prior": []}
        return [p for several in own.values() for p in several]


class HalfFrozen(nn.Module):
    """Layers of which only the bias is trained, or only the bias is frozen: a bias is a dense of the constant 1.
    A factor behind the last layer."""

    bias = "branch {{\n  append 1\n  slice [{0}:{1}]\n  dense 8 bias=no{2}\n}}\ndense 8 bias=no trainable=no\n"
    no = " trainable=no"
    arch = (
        "branch {\n  dense 8 bias=no trainable=no\n}\n" + bias.format(6, 7, "") + "branch {\n  layernorm eps=1e-05 "
        "affine=no\n  scaler\n}\n" + bias.format(8, 9, no) + "relu\nbranch {\n  dense 8 bias=no\n}\n"
        + bias.format(8, 9, no) + "branch {\n  groupnorm groups=2 eps=1e-05 affine=no\n  scaler trainable=no\n}\n"
        + bias.format(8, 9, "") + "elu\ndense 1\ndense 1 bias=no trainable=no\nloss mse\n"
    )

    def __init__(self):
        super().__init__()
        self.fc1, self.norm, self.fc2 = nn.Linear(IN, WIDTH), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)
        self.group, self.fc3 = nn.GroupNorm(2, WIDTH), nn.Linear(WIDTH, 1)
        for p in (self.fc1.weight, self.norm.bias, self.fc2.bias, self.group.weight):
            p.requires_grad_(False)

    def forward(self, x):
        return -self.fc3(F.elu(self.group(self.fc2(F.relu(self.norm(self.fc1(x)))))))

    def canonical(self):
        return [self.fc1.bias, self.norm.weight, self.fc2.weight.t(), self.group.bias, *views(self.fc3)]


class OneOfTwo(nn.Module):
    """Norms with a bias and no scale, and a group norm with a scale and no bias."""

    shift = "branch {{\n  append 1\n  slice [8:9]\n  dense 8 bias=no\n}}\ndense 8 bias=no trainable=no\n{}\n"
    arch = (
        "dense 8\nbranch {\n  batchnorm eps=1e-05 momentum=0.9 affine=no\n}\n" + shift.format("relu")
        + "dense 8\nbranch {\n  layernorm eps=1e-05 affine=no\n}\n" + shift.format("tanh")
        + "dense 8\ngroupnorm groups=2 eps=1e-05 affine=no\nscaler\nelu\ndense 1\nloss mse\n"
    )

    def __init__(self):
        super().__init__()
        self.fc = nn.ModuleList([nn.Linear(size, WIDTH) for size in (IN, WIDTH, WIDTH)])
        self.own = nn.ParameterList([parameter(WIDTH) for _ in range(3)])
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, x):
        one, scale, other = self.own
        if isinstance(x, torch.fx.Proxy):
            x = F.relu(F.batch_norm(self.fc[0](x), None, None, None, one, True))
            x = torch.tanh(F.layer_norm(self.fc[1](x), (WIDTH,), None, other))
            return self.head(F.elu(F.group_norm(self.fc[2](x), 2, scale)))
        # The Hessian: PyTorch cannot differentiate these norms twice.
        x = F.relu(F.batch_norm(self.fc[0](x), None, None, training=True) + one)
        x = torch.tanh(F.layer_norm(self.fc[1](x), (WIDTH,)) + other)
        return self.head(F.elu(F.group_norm(self.fc[2](x), 2) * scale))

    def canonical(self):
        parts = zip(self.fc, (self.own[0], self.own[2], self.own[1]))
        return [*[p for layer, other in parts for p in (*views(layer), other)], *views(self.head)]


class Dense(nn.Module):
    """Batch normalization by the variance with R - 1. Rows of branches that follow each other, with a slice between them; twice the same; around a sum."""

    arch = (
        "dense 4\nbatchnorm eps=0.001 affine=no unbiased=yes\nbatchnorm eps=0.001 momentum=0.99 unbiased=yes\n"
        "branch {\n  slice [0:4]\n}\nbranch {\n  tanh\n}\nslice [0:8]\nbranch {\n  slice [0:8]\n}\nbranch {\n"
        "  scaler init=-1 trainable=no\n  relu\n}\nslice [0:16]\nbranch {\n  slice [0:16]\n}\nbranch {\n  slice [0:16]\n}\n"
        "dense 16 bias=no trainable=no\nbranch {\n  residual {\n    dense 16\n  }\n  elu\n}\nbranch {\n  slice [0:16]\n}\n"
        "dense 16 bias=no trainable=no\ndense 1\nloss mse\n"
    )

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(IN, 4), nn.Linear(16, 16), nn.Linear(16, 1)
        self.norm = BatchRenorm1d(4)

    def forward(self, x):
        h = self.fc1(x)
        h = self.norm((h - h.mean(0)) / (h.var(0) + 1e-3).sqrt())
        h = torch.cat([h, torch.tanh(h)], -1)
        h = torch.cat([h, F.relu(-h)], -1)
        h = h + h
        return self.fc3(F.elu(h + self.fc2(h)) - 0.5 * h)

    def canonical(self):
        return [*views(self.fc1), self.norm.scale, self.norm.bias, *views(self.fc2, self.fc3)]


class Encoded(nn.Module):
    """In front of the first trained layer, what has no line and no trained parameter is a part of the input."""

    arch = "input [0:9]\ndense 8\nrelu\nconcat input[9:12]\ndense 1\nloss mse\n"

    def __init__(self):
        super().__init__()
        self.norm, self.linear, self.conv = nn.BatchNorm1d(IN), nn.Linear(IN, IN), nn.Conv1d(2, 3, 1)
        self.embedding, self.shift = nn.Embedding(4, 3), parameter(9)
        self.requires_grad_(False).norm.eval()
        self.fc1, self.fc2 = nn.Linear(9, WIDTH), nn.Linear(WIDTH + 3, 1)

    def forward(self, x):
        h = self.conv(F.elu(self.linear(self.norm(x))).view(-1, 2, 3)).flatten(1)
        h = F.relu(self.fc1(h + self.shift))
        return self.fc2(torch.cat([h, self.embedding(x[:, 0].long().clamp(0, 3))], -1))

    def canonical(self):
        return views(self.fc1, self.fc2)


class Normed(nn.Module):
    """Group norms; weight and spectral norms by hooks and by a parametrization."""

    arch = (
        "dense 8\ngroupnorm groups=2 eps=0.001\nrelu\ndense 8 norm=weight\nrelu\n"
        "dense 8 bias=no norm=spectral\ngroupnorm groups=2 eps=1e-05 affine=no\ntanh\n"
        "dense 8 norm=spectral\nelu\ndense 1 norm=weight\nloss mse\n"
    )

    def __init__(self):
        super().__init__()
        self.fc1, self.norm = nn.Linear(IN, WIDTH), nn.GroupNorm(2, WIDTH, eps=1e-3)
        self.fc2 = nn.utils.weight_norm(nn.Linear(WIDTH, WIDTH))
        self.fc3 = nn.utils.parametrizations.spectral_norm(nn.Linear(WIDTH, WIDTH, bias=False))
        self.fc4 = nn.utils.spectral_norm(nn.Linear(WIDTH, WIDTH))
        self.head = nn.utils.weight_norm(nn.Linear(WIDTH, 1))

    def forward(self, x):
        x = F.relu(self.fc2(F.relu(self.norm(self.fc1(x)))))
        return self.head(F.elu(self.fc4(torch.tanh(F.group_norm(self.fc3(x), 2)))))

    def twin(self):
        return Formulas(self)


class Formulas(nn.Module):
    """A Normed by formulas, with parameters of its own: the second derivative of PyTorch 1.13's weight_norm is wrong."""

    def __init__(self, normed):
        super().__init__()
        self.names = [name for name, _ in normed.named_parameters()]
        self.values = nn.ParameterList([nn.Parameter(p.detach().clone()) for p in normed.parameters()])
        buffers = dict(normed.named_buffers())
        self.vectors = {"fc3": [buffers[f"fc3.parametrizations.weight.0._{v}"].double() for v in "uv"],
                        "fc4": [buffers[f"fc4.weight_{v}"].double() for v in "uv"]}

    def at(self, name):
        return self.values[self.names.index(name)]

    def spectral(self, x, layer, weight):
        u, v = self.vectors[layer]
        w = self.at(weight)
        return x @ (w / (u @ w @ v)).t()

    def weight(self, x, layer):
        v = self.at(f"{layer}.weight_v")
        return x @ (self.at(f"{layer}.weight_g") * v / v.norm(dim=1, keepdim=True)).t() + self.at(f"{layer}.bias")

    def forward(self, x):
        x = x @ self.at("fc1.weight").t() + self.at("fc1.bias")
        x = F.relu(F.group_norm(x, 2, self.at("norm.weight"), self.at("norm.bias"), 1e-3))
        x = self.spectral(F.relu(self.weight(x, "fc2")), "fc3", "fc3.parametrizations.weight.original")
        x = self.spectral(torch.tanh(F.group_norm(x, 2)), "fc4", "fc4.weight_orig") + self.at("fc4.bias")
        return self.weight(F.elu(x), "head")

    def canonical(self):
        names = ("fc1.weight", "fc1.bias", "norm.weight", "norm.bias", "fc2.weight_v", "fc2.weight_g", "fc2.bias",
                 "fc3.parametrizations.weight.original", "fc4.weight_orig", "fc4.bias", "head.weight_v", "head.weight_g", "head.bias")
        return [self.at(name).t() if self.at(name).dim() > 1 else self.at(name) for name in names]


WEIGHTS = torch.arange(B) / B


def half_squares(f, t):
    """The mean over rows of half the squared errors."""
    return 0.5 * ((f.reshape(t.shape) - t) ** 2).sum() / B


# (critic, loss given to save, loss of the reference)
CASES = [
    (ByHand, "mse", half_squares),
    (Rows, "huber delta=0.5 weight=3", lambda f, t: 3 * F.huber_loss(f["q"], t, delta=0.5)),
    (Stacked, F.mse_loss, lambda f, t: ((f - t[:, None]) ** 2).sum() / B),
    (Loop, "ce min=0 max=1", lambda f, t: -(t[:, None] * torch.log_softmax(f, -1)).sum() / B),
    (Joined, "mse", lambda f, t: (0.5 * WEIGHTS * (f[:, 0] - t) ** 2).mean()),
    *[(kind, "mse", half_squares) for kind in (Sums, HalfFrozen, OneOfTwo, Dense, Encoded, Normed)],
]


def reference(module, loss, x, y, vectors):
    module = (module.twin() if hasattr(module, "twin") else copy.deepcopy(module)).double()
    parameters, numbers = [p for p in module.parameters() if p.requires_grad], copy.deepcopy(module)
    count = 0
    for p in filter(lambda p: p.requires_grad, numbers.parameters()):
        # Each entry holds its place in the parameters' own order.
        p.data = torch.arange(count, count + p.numel(), dtype=torch.float64).reshape(p.shape)
        count += p.numel()
    order = torch.cat([view.reshape(-1) for view in numbers.canonical()]).long()
    total = sum(loss(module(x[n].double()), y[n].double()) for n in range(N)) / N
    gradient = torch.cat([g.reshape(-1) for g in torch.autograd.grad(total, parameters, create_graph=True)])
    products = []
    for v in vectors:
        along = gradient[order] @ torch.as_tensor(v)
        product = torch.autograd.grad(along, parameters, retain_graph=True)
        products.append(torch.cat([g.reshape(-1) for g in product])[order].numpy())
    return gradient[order].detach().numpy(), products


def compare(analyzer, folder):
    torch.manual_seed(1)
    torch.set_num_threads(1)
    comparison = Comparison(analyzer, folder, f"PyTorch {torch.__version__}, other forms")
    for kind, line, loss in CASES:
        name, module = kind.__name__, kind()
        x, y = torch.randn(N, B, IN), torch.randn(N, B, *([1] if name == "ByHand" else []))
        y = torch.softmax(torch.randn(N, B, 3), -1) if name == "Loop" else y
        start, path = time.time(), f"{folder}/{name}.h5"
        weights = WEIGHTS.repeat(N, 1) if name == "Joined" else None
        arch = kappascope.save(path, critics=module, inputs=x, targets=y, loss=line, weights=weights)
        comparison.expect(arch == kind.arch, f"{name}: expected the description\n{kind.arch}found\n{arch}")
        expected = functools.partial(reference, module, loss, x, y)
        comparison.add(name, path, 1, start, expected)
    comparison.end()


if __name__ == "__main__":
    main(compare)
