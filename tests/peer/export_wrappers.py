"""Critics in the wrappers of PyTorch, exported: python3 export_wrappers.py ANALYZER FOLDER

torch.compile, DataParallel, a list of modules, stacked ensembles (torch.func), the module RMSNorm,
a default device: each has to give the same file as the plain critics. What this version of PyTorch
does not have is left out, and named."""

import copy

import h5py
import numpy as np
import torch
from torch import nn

import kappascope
from export_common import analyze, main

N, B, OBS, ACTIONS, WIDTH = 2, 16, 5, 3, 8


def contents(path):
    """{name: array} of a file, and its description."""
    found = {}
    with h5py.File(path) as file:
        file.visititems(
            lambda name, one: found.update({name: one[()]} if hasattr(one, "dtype") else {})
        )
        return found, file["critic"].attrs["arch"]


def same(a, b):
    return (
        a[1] == b[1]
        and a[0].keys() == b[0].keys()
        and all(np.allclose(a[0][name], b[0][name], rtol=1e-12, atol=1e-14) for name in a[0])
    )


def compiled_inside(critic):
    critic = copy.deepcopy(critic)
    critic.mlp = torch.compile(critic.mlp)
    return critic


def stacked(critics):
    """The critics as torch.func has them: parameters with a leading dimension, and an empty
    module."""
    parameters, buffers = torch.func.stack_module_state(critics)
    return kappascope.unstack(copy.deepcopy(critics[0]).to("meta"), parameters, buffers)


class WithBuffer(nn.Module):
    """A critic with a constant that no state_dict has."""

    def __init__(self):
        super().__init__()
        self.register_buffer("shift", torch.randn(OBS + ACTIONS), persistent=False)
        self.mlp = nn.Sequential(nn.Linear(OBS + ACTIONS, WIDTH), nn.Tanh(), nn.Linear(WIDTH, 1))

    def forward(self, x, a):
        return self.mlp(torch.cat([x, a], -1) + self.shift)


class Root(nn.Module):
    """RMSNorm, with the eps of the type of its numbers."""

    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(OBS + ACTIONS, WIDTH),
            nn.RMSNorm(WIDTH),
            nn.RMSNorm(WIDTH, elementwise_affine=False),
            nn.Linear(WIDTH, 1),
        )

    def forward(self, x, a):
        return self.mlp(torch.cat([x, a], -1))


def wrappers():
    """name: (what the version needs, plain critics -> critics in a wrapper)"""
    return {
        "DataParallel": (nn, lambda critics: [nn.DataParallel(q) for q in critics]),
        "ModuleList": (nn, nn.ModuleList),
        "compile": (torch, lambda critics: [torch.compile(q) for q in critics]),
        "compile of DataParallel": (
            torch,
            lambda critics: [torch.compile(nn.DataParallel(q)) for q in critics],
        ),
        "compile of a part": (torch, lambda critics: [compiled_inside(q) for q in critics]),
        "func": (torch, stacked),
    }


def compare(analyzer, folder):
    torch.manual_seed(7)
    torch.set_num_threads(1)
    critics = [WithBuffer(), WithBuffer()]
    critics[1].shift.copy_(critics[0].shift)  # all critics have the same input
    data = dict(
        inputs=(torch.randn(N, B, OBS), torch.randn(N, B, ACTIONS)),
        targets=torch.randn(N, B),
        loss=nn.functional.mse_loss,
    )
    plain = f"{folder}/plain.h5"
    kappascope.save(plain, critics=critics, **data)
    analyze(analyzer, "--order", "4", plain)
    failures, missing = [], []
    for name, (owner, wrap) in wrappers().items():
        if not hasattr(owner, name.split()[0]):
            missing.append(name)
            continue
        kappascope.save(f"{folder}/wrapped.h5", critics=wrap(critics), **data)
        if not same(contents(plain), contents(f"{folder}/wrapped.h5")):
            failures.append(f"{name}: expected the same file as of the plain critics")
    if hasattr(torch, "set_default_device"):
        torch.set_default_device("meta")  # a device without numbers: nothing may be made there
        kappascope.save(f"{folder}/wrapped.h5", critics=critics, **data)
        torch.set_default_device("cpu")
        failures += (
            [] if same(contents(plain), contents(f"{folder}/wrapped.h5")) else ["default device"]
        )
    if hasattr(nn, "RMSNorm"):
        kappascope.save(f"{folder}/rms.h5", critics=Root(), **data)
        analyze(analyzer, "--order", "4", f"{folder}/rms.h5")
    else:
        missing.append("RMSNorm")
    for failure in failures:
        print(f"FAILED: {failure}")
    print(
        f"wrappers of PyTorch {torch.__version__} give the file of the plain critics; not in this "
        f"version: {', '.join(missing) or 'none'}"
    )
    if failures:
        raise SystemExit(1)


if __name__ == "__main__":
    main(compare)
