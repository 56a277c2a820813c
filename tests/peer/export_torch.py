"""Critics of PyTorch, exported and analyzed: python3 export_torch.py ANALYZER FOLDER

Each critic of export_critics_torch.py is exported by the package kappascope, and
gradient and Hessian-vector products of `ANALYZER --precision f64` are compared with PyTorch's own
of the same parameters in float64. Prints, for each critic, the lines that a user writes, the
seconds from there to a spectrum, and the deviations."""

import copy
import inspect
import time

import numpy as np
import torch
from torch.nn import functional as F

import export_critics_torch as zoo
import kappascope
from export_common import Comparison, main, stored

N, B, OBS, ACTIONS, WIDTH = 3, 24, 5, 3, 12


def normal(*shape):
    return torch.randn(*shape)


def probabilities(*shape):
    return torch.softmax(2 * torch.randn(*shape), -1)


# fmt: off
# What a user writes, one function a critic: what their script has already is an argument.

def sac(path, qf1, qf2, obs, actions, y, optimizer):
    kappascope.save(path, critics=[qf1, qf2], inputs={"x": obs, "a": actions}, targets=y,
                           loss=F.mse_loss, optimizer=optimizer, step=1000)


def simba(path, qf1, qf2, obs, actions, y, optimizer):
    kappascope.save(path, critics=[qf1, qf2], inputs=(obs, actions), targets=y,
                           loss="mse weight=2", optimizer=optimizer)


def simba_v2(path, qf1, qf2, obs, actions, y, optimizer):
    kappascope.save(path, critics=[qf1, qf2], inputs=(obs, actions), targets=y,
                           loss="ce min=-5 max=5", optimizer=optimizer, project={"*": "unit"})


def bro(path, qf1, qf2, obs, actions, y, optimizer):
    kappascope.save(path, critics=[qf1, qf2], inputs=(obs, actions), targets=y,
                           loss="quantile", optimizer=optimizer)


def tdmpc2(path, module, parameters, z, actions, y):
    critics = kappascope.unstack(module, parameters)
    for dropout in [m for q in critics for m in q.modules() if isinstance(m, torch.nn.Dropout)]:
        dropout.eval()
    kappascope.save(path, critics=critics, inputs=(z, actions), targets=y,
                           loss="ce min=-10 max=10")


def mrq(path, value, zsa, y, optimizer):
    kappascope.save(path, critics=value, inputs=zsa, targets=y, loss="huber weight=0.5",
                           optimizer=optimizer)


def crossq(path, qf1, qf2, obs, actions, y, optimizer):
    kappascope.save(path, critics=[qf1, qf2], inputs=(obs, actions), targets=y, loss="mse",
                           optimizer=optimizer)


# fmt: on
# The same critics, losses and parameters in float64, in the canonical order of the file format.


def shake(modules):
    """Every parameter matters: no bias of zero, no scale of one."""
    for module in modules:
        for p in module.parameters():
            p.data += 0.1 * torch.randn_like(p)


def flat(modules):
    """Parameters, in the order in which the modules define them, which is that of their layers."""
    return [p for m in modules for p in m.parameters()]


def to_canonical(arrays):
    return torch.cat([(a.t() if a.dim() == 2 else a).reshape(-1) for a in arrays])


def from_canonical(vector, parameters):
    parts = torch.split(vector, [p.numel() for p in parameters])
    return [
        v.reshape(p.t().shape).t() if p.dim() == 2 else v.reshape(p.shape)
        for v, p in zip(parts, parameters)
    ]


def reference(modules, loss, inputs, y, vectors):
    """Gradient and products with the Hessian of the mean over minibatches of the sum over
    critics."""
    modules = [copy.deepcopy(m).double() for m in modules]
    parameters = flat(modules)
    total = 0
    for n in range(N):
        outputs = [m(*[x[n].double() for x in inputs]) for m in modules]
        total = total + sum(loss(f[: y.shape[1]], y[n].double()) for f in outputs) / N
    gradient = torch.autograd.grad(total, parameters, create_graph=True)
    products = []
    for v in vectors:
        along = sum(
            (g * d).sum() for g, d in zip(gradient, from_canonical(torch.as_tensor(v), parameters))
        )
        products.append(
            to_canonical(torch.autograd.grad(along, parameters, retain_graph=True)).numpy()
        )
    return to_canonical(gradient).detach().numpy(), products


def stepped(modules, loss, inputs, y):
    """Adam after one step."""
    optimizer = torch.optim.Adam(flat(modules), lr=3e-4)
    sum(loss(m(*[x[0] for x in inputs])[: y.shape[1]], y[0]) for m in modules).backward()
    optimizer.step()
    return optimizer


def pair(make, loss, y, rows=B, width=OBS, step=True):
    def critics():
        modules = [make(), make()]
        shake(modules)
        inputs, targets = (normal(N, rows, width), normal(N, rows, ACTIONS)), y()
        optimizer = stepped(modules, loss, inputs, targets) if step else None
        return modules, inputs, targets, optimizer

    return critics


def cases():
    """name: (what the user writes, the arguments for it, the reference)."""
    inputs = OBS + ACTIONS
    table = {
        "SAC": (sac, lambda: zoo.SAC(inputs, WIDTH), zoo.squared, lambda: normal(N, B), B),
        "SimBa": (simba, lambda: zoo.SimBa(inputs, WIDTH), zoo.squared, lambda: normal(N, B), B),
        "SimBa-V2": (
            simba_v2,
            lambda: zoo.SimBaV2(inputs, WIDTH, 11),
            zoo.cross_entropy,
            lambda: probabilities(N, B, 11),
            B,
        ),
        "BRO": (
            bro,
            lambda: zoo.BRO(inputs, WIDTH, 7),
            zoo.quantile_huber,
            lambda: normal(N, B, 7),
            B,
        ),
        "CrossQ": (
            crossq,
            lambda: zoo.CrossQ(inputs, WIDTH),
            lambda f, t: 0.5 * zoo.squared(f, t),
            lambda: normal(N, B, 1),
            2 * B,
        ),
    }
    for name, (write, make, loss, y, rows) in table.items():
        modules, x, targets, optimizer = pair(make, loss, y, rows)()
        yield (
            name,
            write,
            (*modules, *x, targets, optimizer),
            lambda vectors, m=modules, x=x, t=targets, loss=loss: reference(m, loss, x, t, vectors),
        )

    critics = [zoo.TDMPC2(inputs, WIDTH, 11).eval() for _ in range(5)]
    shake(critics)
    stacked = {
        name: torch.stack([dict(q.named_parameters())[name] for q in critics])
        for name, _ in critics[0].named_parameters()
    }
    x, y = (normal(N, B, OBS), normal(N, B, ACTIONS)), probabilities(N, B, 11)
    yield (
        "TD-MPC2",
        tdmpc2,
        (zoo.TDMPC2(inputs, WIDTH, 11), stacked, *x, y),
        lambda vectors: reference(critics, zoo.cross_entropy, x, y, vectors),
    )

    value, zsa, t = zoo.MRQ(10, WIDTH), normal(N, B, 10), normal(N, B, 1)
    shake([value])
    yield (
        "MR.Q",
        mrq,
        (value, zsa, t, stepped([value], zoo.smooth_l1_mean, (zsa,), t)),
        lambda vectors: reference([value], zoo.smooth_l1_mean, (zsa,), t, vectors),
    )


def compare(analyzer, folder):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    comparison = Comparison(analyzer, folder, f"PyTorch {torch.__version__}")
    for name, write, arguments, expected in cases():
        before = torch.get_rng_state(), [
            {k: v.clone() for k, v in m.state_dict().items()}
            for m in arguments
            if isinstance(m, torch.nn.Module)
        ]
        start = time.time()
        path = f"{folder}/{name}.torch.h5"
        write(path, *arguments)
        comparison.add(name, path, len(inspect.getsource(write).splitlines()) - 1, start, expected)
        if isinstance(arguments[-1], torch.optim.Adam):
            states = arguments[-1].state.values()
            for moment, key in (("m", "exp_avg"), ("v", "exp_avg_sq")):
                comparison.expect(
                    np.array_equal(
                        stored(path, f"optimizer/{moment}"),
                        to_canonical([s[key] for s in states]).numpy(),
                    ),
                    f"{name}: expected Adam's moments in /optimizer/{moment}",
                )
        after = [m.state_dict() for m in arguments if isinstance(m, torch.nn.Module)]
        comparison.expect(
            all(torch.equal(a[k], b[k]) for a, b in zip(before[1], after) for k in a),
            f"{name}: expected save to leave parameters and running statistics as they were",
        )
        comparison.expect(
            torch.equal(before[0], torch.get_rng_state()),
            f"{name}: expected save to draw no random numbers",
        )
    comparison.end()


if __name__ == "__main__":
    main(compare)
