"""Critics of PyTorch, exported and analyzed: python3 export_torch.py ANALYZER FOLDER

Each critic of export_critics_torch.py is exported by the package kappascope, and
gradient and Hessian-vector products of `ANALYZER --precision f64` are compared with PyTorch's own
of the same parameters in float64. Prints, for each critic, the lines that a user writes, the
seconds from there to a spectrum, and the deviations."""

import copy
import functools
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
    return [v.reshape(p.t().shape).t() if p.dim() == 2 else v.reshape(p.shape) for v, p in zip(parts, parameters)]


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
        directions = from_canonical(torch.as_tensor(v), parameters)
        along = sum((g * d).sum() for g, d in zip(gradient, directions))
        products.append(to_canonical(torch.autograd.grad(along, parameters, retain_graph=True)).numpy())
    return to_canonical(gradient).detach().numpy(), products


def stepped(modules, loss, inputs, y):
    """Adam after one step."""
    optimizer = torch.optim.Adam(flat(modules), lr=3e-4)
    sum(loss(m(*[x[0] for x in inputs])[: y.shape[1]], y[0]) for m in modules).backward()
    optimizer.step()
    return optimizer


def half_squared(f, t):
    return 0.5 * zoo.squared(f, t)


def pairs():
    """The cases of two critics that were trained by Adam."""
    inputs = OBS + ACTIONS
    for name, write, make, loss, width in (
        ("SAC", sac, lambda: zoo.SAC(inputs, WIDTH), zoo.squared, None),
        ("SimBa", simba, lambda: zoo.SimBa(inputs, WIDTH), zoo.squared, None),
        ("SimBa-V2", simba_v2, lambda: zoo.SimBaV2(inputs, WIDTH, 11), zoo.cross_entropy, 11),
        ("BRO", bro, lambda: zoo.BRO(inputs, WIDTH, 7), zoo.quantile_huber, 7),
        ("CrossQ", crossq, lambda: zoo.CrossQ(inputs, WIDTH), half_squared, 1),
    ):
        rows = 2 * B if name == "CrossQ" else B
        modules = [make(), make()]
        shake(modules)
        x = normal(N, rows, OBS), normal(N, rows, ACTIONS)
        y = normal(N, B, *([width] if width else []))
        y = torch.softmax(2 * y, -1) if loss is zoo.cross_entropy else y
        optimizer = stepped(modules, loss, x, y)
        yield name, write, (*modules, *x, y, optimizer), functools.partial(reference, modules, loss, x, y)


def cases():
    """name, what the user writes, the arguments for it, the reference."""
    yield from pairs()
    inputs = OBS + ACTIONS
    critics = [zoo.TDMPC2(inputs, WIDTH, 11).eval() for _ in range(5)]
    shake(critics)
    named = [dict(q.named_parameters()) for q in critics]
    stacked = {name: torch.stack([own[name] for own in named]) for name in named[0]}
    x, y = (normal(N, B, OBS), normal(N, B, ACTIONS)), probabilities(N, B, 11)
    expected = functools.partial(reference, critics, zoo.cross_entropy, x, y)
    yield "TD-MPC2", tdmpc2, (zoo.TDMPC2(inputs, WIDTH, 11), stacked, *x, y), expected

    value, zsa, t = zoo.MRQ(10, WIDTH), normal(N, B, 10), normal(N, B, 1)
    shake([value])
    optimizer = stepped([value], zoo.smooth_l1_mean, (zsa,), t)
    expected = functools.partial(reference, [value], zoo.smooth_l1_mean, (zsa,), t)
    yield "MR.Q", mrq, (value, zsa, t, optimizer), expected


def compare(analyzer, folder):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    comparison = Comparison(analyzer, folder, f"PyTorch {torch.__version__}")
    for name, write, arguments, expected in cases():
        modules = [m for m in arguments if isinstance(m, torch.nn.Module)]
        generator = torch.get_rng_state()
        before = [{k: v.clone() for k, v in m.state_dict().items()} for m in modules]
        start, path = time.time(), f"{folder}/{name}.torch.h5"
        write(path, *arguments)
        comparison.add(name, path, len(inspect.getsource(write).splitlines()) - 1, start, expected)
        if isinstance(arguments[-1], torch.optim.Adam):
            states = arguments[-1].state.values()
            for moment, key in (("m", "exp_avg"), ("v", "exp_avg_sq")):
                moments = to_canonical([s[key] for s in states]).numpy()
                equal = np.array_equal(stored(path, f"optimizer/{moment}"), moments)
                comparison.expect(equal, f"{name}: expected Adam's moments in /optimizer/{moment}")
        after = [m.state_dict() for m in modules]
        same = all(torch.equal(a[k], b[k]) for a, b in zip(before, after) for k in a)
        comparison.expect(same, f"{name}: expected save to leave parameters and running statistics as they were")
        same = torch.equal(generator, torch.get_rng_state())
        comparison.expect(same, f"{name}: expected save to draw no random numbers")
    comparison.end()


if __name__ == "__main__":
    main(compare)
