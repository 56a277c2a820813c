"""The networks of critics.py in PyTorch, the critics' loss, and a description of this PyTorch.
Parameters are lists, in canonical order."""

import ctypes
import os
import re

import torch
from torch.nn import functional

from critics import BATCHNORM_EPS, LAYERNORM_EPS


def library_norm(kind, x, w):
    """PyTorch's own norms. Their backward passes do not support forward-mode differentiation."""
    if kind == "batchnorm":
        return functional.batch_norm(x, None, None, w["scale"], w["bias"], training=True,
                                     eps=BATCHNORM_EPS)
    return functional.layer_norm(x, x.shape[1:], w["scale"], w["bias"], LAYERNORM_EPS)


def plain_norm(kind, x, w):
    dim, eps = (0, BATCHNORM_EPS) if kind == "batchnorm" else (1, LAYERNORM_EPS)
    centered = x - x.mean(dim=dim, keepdim=True)
    variance = (centered * centered).mean(dim=dim, keepdim=True)
    return centered * torch.rsqrt(variance + eps) * w["scale"] + w["bias"]


def dense(x, w):
    """A dense layer of x [R, D], or of [E, R, D] with the kernels of an ensemble."""
    if "bias" not in w:
        return x @ w["kernel"]
    if x.dim() == 3:
        return torch.baddbmm(w["bias"].unsqueeze(1), x, w["kernel"])
    return torch.addmm(w["bias"], x, w["kernel"])


def forward(network, parameters, x, rows, norm=library_norm, relu=torch.relu):
    """Outputs [..., rows, K] for the slice `rows` of x [..., R, D]; statistics are over all R rows."""
    for i, (kind, w) in enumerate(network.by_layer(parameters)):
        if kind == "dense":
            x = dense(x[..., rows, :] if i + 1 == len(network.layers) else x, w)
        else:
            x = relu(x) if kind == "relu" else norm(kind, x, w)
    return x


def loss(critic, outputs, target):
    """The mean loss over the rows; for outputs [E, R, K] summed over the ensemble."""
    if critic.loss == "mse":
        return 0.5 * ((outputs - target) ** 2).sum() / len(target)
    mass = target.sum(dim=-1)
    return (mass * torch.logsumexp(outputs, dim=-1) - (target * outputs).sum(dim=-1)).sum() / \
        len(target)


def minibatch_loss(critic, parameters, x, target, norm=library_norm):
    return loss(critic, forward(critic, parameters, x, slice(len(target)), norm), target)


def blas():
    """The BLAS that this process has loaded; OpenBLAS's own description if it is that."""
    with open("/proc/self/maps") as maps:
        files = {line.split()[-1] for line in maps if re.search(r"/lib(open|mkl_|c?)blas", line)}
    for path in files:
        library = ctypes.CDLL(path)
        if hasattr(library, "openblas_get_config"):
            library.openblas_get_config.restype = ctypes.c_char_p
            library.openblas_get_corename.restype = ctypes.c_char_p
            version = library.openblas_get_config().decode().split()[:2]
            return f"{' '.join(version)}, kernel {library.openblas_get_corename().decode()}"
    if torch.backends.mkl.is_available():
        return re.search(r"(Math Kernel Library Version \S+)", torch.__config__.show())[1]
    return ", ".join(sorted(os.path.basename(path) for path in files)) or "unknown"


def about():
    capability = re.search(r"CPU capability usage: (.*)", torch.__config__.show())
    return {"name": f"PyTorch {torch.__version__}", "blas": blas(),
            "threads": torch.get_num_threads(), "capability": capability and capability[1]}
