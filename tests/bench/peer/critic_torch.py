"""The critics of critics.py in PyTorch: network and loss. Parameters are lists, in canonical
order."""

import torch
from torch.nn import functional

from critics import BATCHNORM_EPS, LAYERNORM_EPS


def normalize(x, dim, eps, w):
    centered = x - x.mean(dim=dim, keepdim=True)
    variance = (centered * centered).mean(dim=dim, keepdim=True)
    return centered * torch.rsqrt(variance + eps) * w["scale"] + w["bias"]


def forward(critic, parameters, x, loss_rows, fused=True):
    """Outputs [loss_rows, K] of the first rows of x [R, D]; statistics are those of all R.

    fused: PyTorch's own norms; their backward passes have no forward-mode derivative."""
    w, layers = iter(parameters), len(critic.layers)
    for i, (kind, shapes) in enumerate(critic.layers):
        w_here = {name: next(w) for name in shapes}
        if kind in ("batchnorm", "layernorm") and not fused:
            batch = kind == "batchnorm"
            x = normalize(x, 0 if batch else 1, BATCHNORM_EPS if batch else LAYERNORM_EPS, w_here)
        elif kind == "batchnorm":
            x = functional.batch_norm(x, None, None, w_here["scale"], w_here["bias"],
                                      training=True, eps=BATCHNORM_EPS)
        elif kind == "layernorm":
            x = functional.layer_norm(x, x.shape[1:], w_here["scale"], w_here["bias"],
                                      LAYERNORM_EPS)
        elif kind == "relu":
            x = torch.relu(x)
        else:
            x = x[:loss_rows] if i + 1 == layers else x
            x = torch.addmm(w_here["bias"], x, w_here["kernel"]) if "bias" in w_here else \
                x @ w_here["kernel"]
    return x


def loss(critic, outputs, target):
    """The mean over the rows."""
    if critic.loss == "mse":
        return 0.5 * ((outputs - target) ** 2).sum() / len(target)
    mass = target.sum(dim=1)
    return (mass * torch.logsumexp(outputs, dim=1) - (target * outputs).sum(dim=1)).mean()


def minibatch_loss(critic, parameters, x, target, fused=True):
    return loss(critic, forward(critic, parameters, x, len(target), fused), target)
