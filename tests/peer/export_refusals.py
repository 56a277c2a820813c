"""What the package kappascope refuses of PyTorch, and how: python3 export_refusals.py ANALYZER FOLDER

Every wrong or inexpressible export raises Refused with words that name the place, and leaves no
file. """

import os
import warnings

import torch
from torch import nn
from torch.nn import functional as F

import export_critics_torch as zoo
import kappascope as kx
from export_common import expect_refusal, main

N, B, IN, WIDTH = 2, 8, 6, 5


def mlp(*inner, inputs=IN, outputs=1):
    return nn.Sequential(nn.Linear(inputs, WIDTH), *inner, nn.Linear(WIDTH, outputs))


def spoiled(net):
    with torch.no_grad():
        next(net.parameters())[0, 0] = torch.nan
    return net


class Does(nn.Module):
    """Two linear layers, with a function of the hidden activations between them."""

    def __init__(self, function):
        super().__init__()
        self.a, self.b, self.function = nn.Linear(IN, WIDTH), nn.Linear(WIDTH, 1), function

    def forward(self, x):
        return self.b(self.function(self.a(x), self, x))


class BatchRenorm1d(nn.Module):
    """With the names of another library, not of sb3-contrib."""

    def __init__(self, width):
        super().__init__()
        self.warmup_steps, self.weight = 100, nn.Parameter(torch.ones(width))
        self.register_buffer("running_mean", torch.zeros(width))

    def forward(self, x):
        self.running_mean = self.running_mean + 0.01 * x.mean(0)
        return (x - x.mean(0)) * self.weight


class Stats(nn.Module):
    """A normalizer of its own."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.randn(IN))
        self.q = mlp()

    def forward(self, x):
        return self.q(x - self.mean)


class Times(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return self.factor * x


class Shifts(nn.Module):
    def forward(self, x):
        return x + 0.5


class Least(nn.Module):
    def __init__(self):
        super().__init__()
        self.q1, self.q2 = mlp(), mlp()

    def forward(self, x):
        return torch.min(self.q1(x), self.q2(x))


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = mlp()

    def forward(self, x):
        if x.sum() > 0:
            x = -x
        return self.q(x)


class Ranges(nn.Module):
    """The values of actions, one of which is chosen."""

    def __init__(self):
        super().__init__()
        self.q = mlp(outputs=3)

    def forward(self, x):
        return self.q(x)[range(x.shape[0]), x[:, 0].long()]


class Implicit(nn.Module):
    """Implicit quantiles: features times an embedding; the choice of an action is not what has no line."""

    def __init__(self):
        super().__init__()
        self.f, self.e, self.o = nn.Linear(IN, WIDTH), nn.Linear(1, WIDTH), nn.Linear(WIDTH, 3)

    def forward(self, x):
        z = self.o(F.relu(self.f(x)).unsqueeze(1) * F.relu(self.e(x.unsqueeze(-1))))
        return z.gather(2, (0 * x).long().unsqueeze(-1)).squeeze(-1)


class Modes(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = mlp()

    def forward(self, x):
        return self.q(x) if self.training else self.q(x.clamp(-1, 1))


class Silent(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(IN, WIDTH), nn.Linear(WIDTH, 1)

    def forward(self, x):
        with torch.no_grad():
            x = self.a(x)
        return self.b(x)


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(IN, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 1)

    def forward(self, x):
        return self.c(self.b(torch.tanh(self.b(self.a(x)))))


class Captured(nn.Module):
    """A tensor that may well be trained, and that no list of parameters has."""

    def __init__(self):
        super().__init__()
        self.shift, self.q = torch.zeros(IN, dtype=torch.float64, requires_grad=True), mlp()

    def forward(self, x):
        return self.q(x + self.shift)


class Unregistered(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.q = [nn.Linear(IN, IN)], mlp()

    def forward(self, x):
        return self.q(self.layers[0](x))


def unused():
    q = mlp()
    q[0].spare = nn.Linear(2, 2)
    return q


def frozen():
    q = mlp(nn.Tanh(), nn.utils.weight_norm(nn.Linear(WIDTH, WIDTH)))
    q[2].weight_g.requires_grad_(False)
    return q


def hooked():
    q = mlp()
    q[0].register_forward_hook(lambda module, inputs, output: 2 * output)
    return q


# The module, and expressions that the message contains: the place, the reason, the way out.
MODULES = [
    (
        lambda: mlp(nn.Dropout(0.1)),
        [r"critics\[0\]\.1 \(Dropout", "random mask", r"\.eval\(\) for this layer"],
    ),
    (
        lambda: Does(lambda x, m, _: F.dropout(x, 0.1, m.training)),
        ["F.dropout", "export_refusals.py:", "random mask"],
    ),
    (
        lambda: mlp(nn.BatchNorm1d(WIDTH).eval()),
        [r"\.1 \(BatchNorm1d", "evaluation mode", r"module.train\(\)"],
    ),
    (lambda: mlp(nn.BatchNorm1d(WIDTH)).eval(), ["evaluation mode", r"module.train\(\)"]),
    (lambda: Modes().eval(), ["evaluation mode", r"module.train\(\) before save"]),
    (
        lambda: Does(lambda x, m, _: x.detach()),
        ["detach", r"x\.detach\(\)", "differentiated through"],
    ),
    (Silent, [r"critics\[0\]\.a\.weight", "gradient", "no_grad"]),
    (Branches, [r"export_refusals\.py:\d+: if x\.sum\(\) > 0", "control flow", "Way out"]),
    (
        lambda: Does(lambda x, m, inputs: torch.relu(x) + inputs.mean()),
        [r"export_refusals\.py:\d+:", "only sums"],
    ),
    (Least, ["torch.min", "return all critics"]),
    (
        lambda: nn.utils.parametrizations.orthogonal(mlp()[0]),
        ["weight is computed from other parameters", "remove_parametrizations"],
    ),
    (
        lambda: mlp(nn.utils.parametrizations.spectral_norm(nn.Linear(WIDTH, WIDTH), dim=1)),
        [r"\.1 \(Parametrized", "remove_parametrizations"],
    ),
    (
        lambda: mlp(nn.utils.weight_norm(nn.Linear(WIDTH, WIDTH), dim=1)),
        [r"\.1 \(Linear\)", "weight_norm"],
    ),
    (
        lambda: mlp(nn.utils.weight_norm(nn.Linear(WIDTH, WIDTH), dim=None)),
        [r"\.1 \(Linear\)", "weight_norm"],
    ),
    (
        lambda: Does(lambda x, m, _: F.group_norm(x.unsqueeze(-1), 1).squeeze(-1)),
        ["group_norm", "3-dimensional"],
    ),
    (hooked, [r"\.0 \(Linear\)", "a hook can change", "remove it"]),
    (
        Twice,
        [r"\(Linear; export_refusals\.py:\d+: return self\.c", r"b\.weight is used twice", "of its own"],
    ),
    (
        frozen,
        [
            r"critics\[0\]\.2 \(Linear",
            r"2\.weight_v \(trained\), 2\.weight_g \(frozen\), 2\.bias \(trained\)",
            "in parts",
        ],
    ),
    (lambda: Does(lambda x, m, _: x + 0.1 * torch.sin(m.a(_))), ["Way out"]),
    (
        lambda: nn.Sequential(mlp(), Times(2), Shifts()),
        ["constant summand", r"export_refusals\.py:\d+:", "add it to the bias"],
    ),
    (
        lambda: Does(lambda x, m, _: torch.relu(x) + torch.arange(5.0)),
        ["constant summand", r"export_refusals\.py:\d+:", "bias"],
    ),
    (
        lambda: Does(lambda x, m, _: torch.cumsum(x, -1)),
        [r"cumsum; export_refusals\.py:\d+:", "no line in the description"],
    ),
    (
        lambda: Does(lambda x, m, _: x / x.norm(dim=0, keepdim=True).clamp(min=1e-3)),
        ["only as a norm"],
    ),
    (
        lambda: Does(lambda x, m, _: x / (x.norm(dim=-1, keepdim=True) + 1e-3)),
        [r"export_refusals\.py:\d+:", "Way out"],
    ),
    (
        lambda: Does(
            lambda x, m, _: (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-5).sqrt()
        ),
        ["biased", "unbiased=False"],
    ),
    (
        lambda: nn.Sequential(mlp(), nn.Tanh()),
        [r"critics\[0\]\.1 \(Tanh", "last layer of a critic is a Linear"],
    ),
    (lambda: spoiled(mlp()), [r"critics\[0\]\.0\.weight: expected finite numbers, found nan"]),
    # No way out leads to another critic.
    (lambda: mlp(nn.ELU(0.5)), [r"\.1 \(ELU", "alpha is 0.5", "Way out: export the part behind"]),
    (lambda: mlp(nn.SELU()), [r"\.1 \(SELU", "Way out: export the part behind it, .*block of the Hessian", "with a line: relu"]),
    (lambda: mlp(nn.Softmax(0)), [r"\.1 \(Softmax", "elsewhere the only one with a line is over all features"]),
    (lambda: nn.Sequential(mlp(), nn.Softmax(-1)), [r"\.1 \(Softmax", "a part of the ce loss", "return the logits"]),
    (lambda: Does(lambda x, m, _: x - x.max(-1, keepdim=True)[0]), ["node max", "has the mean"]),
    (Implicit, ["node mul", "a product of activations"]),
    (Ranges, ["cannot be interpreted as an integer", r"torch\.arange\(len\(x\)\)"]),
    (lambda: nn.Sequential(nn.PReLU(), mlp()), [r"critics\[0\]\.0 \(PReLU", "requires_grad_"]),
    (lambda: nn.Sequential(nn.GRUCell(IN, WIDTH), mlp(inputs=WIDTH)), [r"\.0 \(GRUCell", "part behind it"]),
    (lambda: nn.Sequential(nn.BatchNorm1d(IN).eval(), mlp()), [r"\.0 \(BatchNorm1d", "evaluation mode"]),
    (
        lambda: nn.Sequential(nn.Unflatten(1, (2, 3)), nn.Conv1d(2, 2, 1), nn.Flatten(), mlp()),
        [r"expressed:\n  critics\[0\]\.1 \(Conv1d", "convolutions"],
    ),
    (
        lambda: Does(lambda x, m, inputs: x + F.embedding(inputs[:, 0].long().clamp(0, 0), m.b.weight)),
        ["embedding", "part behind it"],
    ),
    (lambda: nn.Sequential(zoo.BatchRenorm1d(IN, 101), mlp()), [r"\.0 \(BatchRenorm1d", "after its warm-up"]),
    (lambda: nn.Sequential(BatchRenorm1d(IN), mlp()), ["running_mean", "stored outside of forward"]),
    (lambda: nn.Sequential(nn.LazyLinear(IN), mlp()), [r"\.0 \(LazyLinear\)", "once on a minibatch"]),
    (lambda: mlp(nn.LayerNorm(WIDTH, eps=0.0)), [r"\.1 \(LayerNorm", "eps from 1e-12 to 1, found 0"]),
    (
        lambda: Does(lambda x, m, _: (x - x.mean(0)) / (x.var(0, correction=2) + 1e-5).sqrt()),
        ["correction of 0 or 1, found 2"],
    ),
    (
        lambda: Does(lambda x, m, _: torch.einsum(x, [0, 1], m.b.weight, [2, 1], [0, 2]) + x),
        ["einsum", "indices as a string"],
    ),
    (Unregistered, ["not installed as a submodule", r"nn\.ModuleList"]),
    (Captured, ["requires gradients and is no parameter", "torch.nn.Parameter"]),
    (
        lambda: mlp(nn.Dropout(0.1), nn.PReLU()),
        [r"\.1 \(Dropout", r"\.2 \(PReLU"],
    ),  # every line at once
]


def arguments():
    torch.manual_seed(2)
    q1, q2 = zoo.SAC(IN, WIDTH), zoo.SAC(IN, WIDTH)
    x, a, y = torch.randn(N, B, IN - 2), torch.randn(N, B, 2), torch.randn(N, B)
    return dict(critics=[q1, q2], inputs=(x, a), targets=y, loss="mse"), (q1, q2, x, a, y)


def total_loss(critics, y, *inputs):
    """The sum over the critics of the mean squared error over all minibatches."""
    flat = [one.flatten(0, 1) for one in inputs]
    return float(sum(F.mse_loss(q(*flat).squeeze(-1), y.flatten()) for q in critics))


def wrong_checks(critics, x, a, y):
    """(changed arguments, expressions) of losses that are not those of the training."""
    with torch.no_grad():
        here, turned = total_loss(critics, y, x, a), total_loss(critics, y, a, x)
    return [
        (dict(check=here), ["twice|2 times as large", "weight=2"]),
        (dict(check=here / 4, loss="mse"), ["0.5 times as large", "mean over the critics", "all 2 minibatches"]),
        (
            dict(check=here * B / 2, loss="mse weight=0.5"),
            ["16 times as large", "without the 1/2 of mse, and the sum over the rows", "weight=8$"],
        ),
        (dict(check=turned, loss="mse weight=2"), ["check", "another order"]),
    ]


def wrong_arrays(x, a, y):
    """(changed arguments, expressions) of inputs, targets, weights and losses."""
    return [
        (dict(inputs=(a, x, y)), ["forward", "found 3"]),
        (dict(inputs={"obs": x, "a": a}), [r"forward\(x, a\)", "obs"]),
        (dict(inputs=(x, a[0])), [r"\[N, R, D\]", r"a \[8, 2\]"]),
        (dict(inputs=(x, a[:, :4])), ["as many minibatches and rows"]),
        (dict(inputs=(list(x), [a[0], a[1, :3]])), [r"inputs: a", r"\[8, 2\], \[3, 2\]", "drop_last=True"]),
        (dict(targets=[y[0], y[1, :3]]), [r"targets", r"\[8\], \[3\]", "rows of weight 0"]),
        (dict(inputs=(x, (a > 0).long())), ["inputs: a", "real numbers", "int64"]),
        (dict(inputs=(x * float("nan"), a)), ["inputs: x", "finite", "nan"]),
        (dict(targets=y.long()), ["targets", "real numbers", "int64", "Way out"]),
        (dict(targets=y[0]), [r"targets", r"\[N, B, 1\] or \[N, B\]", r"found \[8\]"]),
        (dict(targets=y.t()), [r"N = 2, B <= 8", r"found \[8, 2\]"]),
        (dict(targets=y[:, :4]), ["expected 8 rows", "batch normalization only"]),
        (dict(loss="MSELoss"), ["mse, ce, huber, quantile", "mean 'mse weight=2'"]),
        (dict(loss="mse reduction=sum"), ["reduction=sum", "known: weight"]),
        (dict(loss="ce"), ["min=V and max=V"]),
        (dict(loss="ce min=-1 max=1"), ["ce: expected a last dense of at least 2 columns, found 1"]),
        (dict(loss=nn.MSELoss(reduction="sum")), ["reduction='mean'"]),
        (dict(loss=F.cross_entropy), ["cross_entropy", "'ce min=-10 max=10'"]),
        (dict(targets=y.to("meta")), ["targets: expected an array with values", "Way out"]),
        (dict(targets=y.to_sparse()), ["targets: expected an array with values", r"to_dense\(\)"]),
        (dict(weights=-torch.rand(N, B)), ["weights", "at least 0"]),
        (dict(weights=torch.rand(B, N)), ["weights", r"\[2, 8\]", r"\[8, 2\]"]),
        (dict(weights=torch.rand(N, B), loss=F.mse_loss), ["loss as a line", "'mse weight=2'"]),
    ]


def wrong_critics(q1, x, a, y):
    """(changed arguments, expressions) of critics and optimizers."""
    return [
        (
            dict(critics=nn.Sequential(nn.BatchNorm1d(IN), mlp()), inputs=torch.randn(N, 1, IN), targets=y[:, :1]),
            ["more than 1 value", "minibatches of several rows"],
        ),
        (dict(critics=[q1, q1]), [r"critics\[1\]\.fc1\.weight is also critics\[0\]\.fc1\.weight"]),
        (dict(critics=[q1, zoo.SAC(IN, 7)]), ["same architecture", "dense 7", "Way out: a file for each critic"]),
        (
            dict(critics=mlp(), inputs={"input": {"a": x, "b": a}}),
            ["inputs: input: expected one array, found a dictionary with a, b", "Way out: a module whose forward"],
        ),
        (dict(critics=[torch.jit.script(mlp()), q1]), [r"critics\[0\]: a program of TorchScript", "Way out"]),
        (
            dict(critics=nn.Sequential(torch.jit.trace(mlp(), torch.zeros(B, IN)))),
            [r"critics\[0\]\.0: a program of TorchScript"],
        ),
        (dict(critics=[Stats(), Stats()], inputs=torch.randn(N, B, IN)), ["same input", "a file of its own"]),
        (dict(critics=nn.Sequential), ["modules of PyTorch"]),
        (dict(critics="qf1"), ["modules of PyTorch", "str"]),
        (dict(critics=Least), ["modules of PyTorch", "type"]),
        (dict(project={"1.weight": "unit"}), ["1.weight", "no kernel has such a name"]),
        (dict(project={"*": "norm"}), ["'unit' or 'unit-kernel'", "'norm'"]),
        (dict(optimizer=torch.optim.SGD(q1.parameters(), 0.1)), ["Adam or AdamW", "SGD"]),
        (dict(optimizer=torch.optim.Adam(q1.parameters(), amsgrad=True)), ["found Adam with amsgrad"]),
        (dict(optimizer=torch.optim.Adam(q1.parameters()).state_dict()), ["expected Adam or AdamW .*, found dict"]),
        (
            dict(optimizer=torch.optim.Adam(q1.parameters())),
            ["critics'? optimizer|trains the critics", r"critics\[1\]"],
        ),
    ]


def wrong_distributions(y):
    """(arguments, expressions) of critics with several outputs."""
    ce = dict(
        critics=mlp(outputs=4),
        inputs=torch.randn(N, B, IN),
        targets=torch.softmax(torch.randn(N, B, 4), -1),
        loss="ce min=-1 max=1",
    )
    yield {**ce, "targets": torch.randn(N, B, 4)}, ["distributions", "sums"]
    yield {**ce, "targets": torch.randint(4, (N, B))}, ["int64", "one_hot"]
    yield {**ce, "targets": torch.randn(N, B)}, [r"\[N, B, 4\]", "atoms"]
    yield {**ce, "loss": "mse", "targets": y}, [r"\[N, B, 4\]", "taken action alone"]
    k, t = 4, torch.randn(N, B, 3)
    share = (torch.arange(k) + 0.5) / k
    with torch.no_grad():
        f = ce["critics"](ce["inputs"])[..., None]
    d = t[:, :, None] - f
    huber = F.smooth_l1_loss(f.expand_as(d), f + d, reduction="none", beta=0.5)
    losses = (share[:, None] - (d < 0).float()).abs() * huber
    quantile = {**ce, "loss": "quantile kappa=0.5", "targets": t}
    yield {**quantile, "check": losses.mean()}, ["the mean over the outputs", "divided by 0.5", "weight=0.5$"]
    yield (
        {**quantile, "check": losses.sum((-1, -2, -3))},
        ["sum over the targets", "divided by 0.5", "sum over the rows", "minibatch"],
    )


def wrong():
    """(arguments, expressions) of exports that would give believable numbers, or none."""
    right, (q1, q2, x, a, y) = arguments()
    for change, words in (*wrong_checks((q1, q2), x, a, y), *wrong_arrays(x, a, y), *wrong_critics(q1, x, a, y)):
        yield {**right, **change}, words
    yield from wrong_distributions(y)


def compare(analyzer, folder):
    torch.set_num_threads(1)
    torch.manual_seed(3)
    x, y = torch.randn(N, B, IN), torch.randn(N, B)
    calls = [(dict(critics=make(), inputs=x, targets=y, loss="mse"), words) for make, words in MODULES]
    calls += wrong()
    failures = [expect_refusal(folder, call, words, f"export {i}") for i, (call, words) in enumerate(calls)]
    right, (q1, q2, x, a, y) = arguments()
    total = total_loss((q1, q2), y, x, a)
    kx.save(f"{folder}/accepted.h5", **{**right, "loss": F.mse_loss, "check": total})  # what is right is accepted
    failures += [] if os.listdir(folder).count("refused.h5") == 0 else ["expected no file"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # PyTorch has nothing to say
        kx.save(f"{folder}/silent.h5", **right)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        kx.save(f"{folder}/unused.h5", unused(), torch.randn(N, B, IN), y, "mse")
    if not any("0.spare.weight, 0.spare.bias" in str(one.message) for one in found):
        failures.append("expected a warning that names the parameters which forward does not use")
    for failure in filter(None, failures):
        print(f"FAILED: {failure}")
    print(f"{len(failures)} exports of PyTorch that are to be refused")
    if any(failures):
        raise SystemExit(1)


if __name__ == "__main__":
    main(compare)
