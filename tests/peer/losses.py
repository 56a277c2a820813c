"""The losses, targets and defaults of analysis/LOSSES.md against the analyzer: python3 losses.py
ANALYZER

Runs the Python of that page and writes, for each loss, a checkpoint with PyTorch's outputs, losses
and norms of gradients in float64, which the analyzer compares with its own to 1e-9. A wrong factor
must be refused. Then checks PyTorch's defaults by those that the page names."""

import re
import subprocess
import sys
import tempfile

import h5py
import numpy as np
import torch

N, B, D, E = 3, 12, 5, 2
failures = []


def page():
    with open("analysis/LOSSES.md", encoding="utf-8") as file:
        text = file.read()
    names = {}
    for block in re.findall(r"(?ms)^```python\n(.*?)^```", text):
        exec(block, names)  # pylint: disable=exec-used
    return names


def write(path, line, outputs, target, loss):
    """A critic without hidden layers: f = x W + b."""
    rng = np.random.default_rng(1)
    w = torch.tensor(rng.standard_normal((E, D, outputs)), requires_grad=True)
    b = torch.tensor(rng.standard_normal((E, outputs)), requires_grad=True)
    x = torch.tensor(rng.standard_normal((N, B, D)))
    f = torch.einsum("nbd,edk->nbek", x, w) + b
    losses, norms = [], []
    for n in range(N):
        value = sum(loss(f[n, :, e], target[n]) for e in range(E))
        gradient = torch.autograd.grad(value, (w, b), retain_graph=True)
        losses.append(value.item())
        norms.append(torch.cat([g.flatten() for g in gradient]).norm().item())
    with h5py.File(path, "w") as file:
        file.attrs.update(format="kappascope-checkpoint", version=1)
        file.create_group("critic").attrs.update(arch=f"dense {outputs}\n{line}\n", ensemble=E)
        file["critic/00_dense/kernel"] = w.detach().numpy()
        file["critic/00_dense/bias"] = b.detach().numpy()
        file["batch/input"] = x.numpy()
        file["batch/target"] = target.numpy()
        file["batch/output"] = f.detach().numpy()
        file["batch/loss"] = losses
        file["batch/gradient_norm"] = norms


def check(analyzer, folder, case, right=True):
    line, outputs, target, loss = case
    path = f"{folder}/critic.h5"
    write(path, line, outputs, target, loss)
    run = subprocess.run(
        [analyzer, "-q", "--order", "2", path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if right and run.returncode != 0:
        failures.append(f"{line}: {run.stderr.strip()}")
    if not right and (run.returncode != 2 or "/batch/loss: minibatch 0: " not in run.stderr):
        failures.append(
            f"{line}: expected a refusal, found {run.returncode}, '{run.stderr.strip()}'"
        )


def cases(page_of):
    """Lines, outputs, targets and losses: those that agree, and those that do not."""
    rng = np.random.default_rng(0)
    y = torch.tensor(2 * rng.standard_normal((N, B)))
    value, samples = y[..., None], torch.tensor(rng.standard_normal((N, B, 7)))
    more = torch.tensor(rng.standard_normal((N, B, 10)))
    mse, huber, quantile, ce = (page_of[name] for name in ("mse", "huber", "quantile", "ce"))
    two_hot, smooth = (page_of[name](y, -3, 3, 11) for name in ("two_hot", "hl_gauss"))
    functional = torch.nn.functional
    right = [
        ("loss mse", 1, value, mse),
        ("loss mse weight=2", 1, value, functional.mse_loss),
        ("loss huber", 1, value, huber),
        ("loss huber delta=0.3", 1, value, lambda f, t: huber(f, t, 0.3)),
        (
            "loss huber delta=0.5 weight=2",
            1,
            value,
            lambda f, t: functional.smooth_l1_loss(f, t, beta=0.5),
        ),
        ("loss quantile", 7, samples, quantile),
        ("loss quantile kappa=0.3", 7, samples, lambda f, t: quantile(f, t, 0.3)),
        ("loss quantile", 7, more, quantile),
        ("loss ce min=-3 max=3", 11, two_hot, ce),
        ("loss ce min=-3 max=3", 11, smooth, ce),
        (f"loss mse weight={2 / E}", 1, value, lambda f, t: functional.mse_loss(f, t) / E),
        (
            f"loss mse weight={2 * B}",
            1,
            value,
            lambda f, t: functional.mse_loss(f, t, reduction="sum"),
        ),
        (f"loss quantile weight={1 / 7}", 7, more, lambda f, t: quantile(f, t) / 7),
    ]
    wrong = [
        ("loss mse", 1, value, functional.mse_loss),
        ("loss huber delta=0.5", 1, value, lambda f, t: functional.smooth_l1_loss(f, t, beta=0.5)),
        ("loss quantile", 7, samples, lambda f, t: quantile(f, t) / 7),
        ("loss ce min=-3 max=3", 11, two_hot, lambda f, t: ce(f, t) * E),
    ]
    return right, wrong, (y, two_hot, smooth)


def check_targets(page_of, y, two_hot, smooth):
    """The mean of two-hot targets is the clipped value; both sum to 1."""
    z = page_of["atoms"](-3, 3, 11)
    for name, target in ("two_hot", two_hot), ("hl_gauss", smooth):
        if not torch.allclose(target.sum(-1), torch.ones_like(y)) or (target < 0).any():
            failures.append(f"{name}: not a distribution")
    if not torch.allclose(two_hot @ z, y.clamp(-3, 3)):
        failures.append("two_hot: the mean is not the value")
    inside = y.abs() < 1.5
    if not torch.allclose((smooth @ z)[inside], y[inside], atol=0.05):
        failures.append("hl_gauss: the mean is far from the value")


def check_defaults():
    modules = torch.nn
    found = {
        "BatchNorm1d eps": modules.BatchNorm1d(2).eps,
        "BatchNorm1d momentum": modules.BatchNorm1d(2).momentum,
        "LayerNorm eps": modules.LayerNorm(2).eps,
        "GELU": modules.GELU().approximate,
        "ELU": modules.ELU().alpha,
        "LeakyReLU": modules.LeakyReLU().negative_slope,
    }
    expected = {
        "BatchNorm1d eps": 1e-5,
        "BatchNorm1d momentum": 0.1,
        "LayerNorm eps": 1e-5,
        "GELU": "none",
        "ELU": 1.0,
        "LeakyReLU": 0.01,
    }
    if hasattr(modules, "RMSNorm"):
        found["RMSNorm"], expected["RMSNorm"] = modules.RMSNorm(2).eps, None
    if found != expected:
        failures.append(f"defaults of PyTorch: the page has {expected}, found {found}")
    y, norm = torch.tensor([[1.0], [2.0], [4.0]]), modules.BatchNorm1d(1, momentum=1.0)
    biased = (y - y.mean()) / (y.var(unbiased=False) + norm.eps).sqrt()
    if not torch.allclose(norm(y), biased) or not torch.allclose(
        norm.running_var, y.var(unbiased=True)
    ):
        failures.append(
            "BatchNorm1d: not the biased variance, or a running variance that is not unbiased"
        )
    x = torch.tensor([[3e-13, 4e-13]], dtype=torch.float64)
    if not torch.allclose(torch.nn.functional.normalize(x), x / 1e-12):
        failures.append("F.normalize: eps is not 1e-12")


def main():
    analyzer = sys.argv[1]
    page_of = page()
    right, wrong, targets = cases(page_of)
    with tempfile.TemporaryDirectory() as folder:
        for case in right:
            check(analyzer, folder, case)
        for case in wrong:
            check(analyzer, folder, case, right=False)
    check_targets(page_of, *targets)
    check_defaults()
    if failures:
        sys.exit("\n".join(failures))
    print(f"{len(right)} losses agree with PyTorch to 1e-9, {len(wrong)} wrong factors are refused")


main()
