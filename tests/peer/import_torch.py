"""State_dicts of PyTorch, imported as they are, and by a Python without PyTorch, which refuses them, after the line
of Python in its message has converted them: python import_torch.py PROGRAMS FOLDER PYTHON_WITHOUT_TORCH"""

import copy
import os
import re
import sys
import zipfile

import h5py
import numpy as np
import torch

from import_common import import_and_analyze, run, succeed, write

MINIBATCHES, ROWS, INPUTS, WIDTH = 3, 8, 5, 5
ARCH = f"dense {WIDTH}\nlayernorm eps=1e-5\nrelu\ndense {WIDTH}\nsilu\ndense 1\nloss mse\n"
MAP = """layout = torch
00_dense/kernel = q*.0.weight
00_dense/bias = q*.0.bias
01_layernorm/scale = q*.1.weight
01_layernorm/bias = q*.1.bias
03_dense/kernel = q*.3.weight
03_dense/bias = q*.3.bias
05_dense/kernel = q*.5.weight
05_dense/bias = q*.5.bias
ignore log_alpha
"""


def make_critic():
    return torch.nn.Sequential(torch.nn.Linear(INPUTS, WIDTH), torch.nn.LayerNorm(WIDTH), torch.nn.ReLU(),
                               torch.nn.Linear(WIDTH, WIDTH), torch.nn.SiLU(), torch.nn.Linear(WIDTH, 1))


def results_of(critics, x, t):
    """Outputs, losses and norms of the gradient of the minibatches."""
    outputs, losses, norms = [], [], []
    for n in range(MINIBATCHES):
        f = torch.stack([critic(x[n]) for critic in critics.values()], 1)  # [ROWS, critics, 1]
        loss = 0.5 * ((f[..., 0] - t[n][:, None]) ** 2).mean(0).sum()
        gradient = torch.autograd.grad(loss, critics.parameters())
        outputs.append(f.detach().numpy())
        losses.append(loss.item())
        norms.append(sum((g**2).sum().item() for g in gradient) ** 0.5)
    return {"output": np.stack(outputs), "loss": losses, "gradient_norm": norms}


def make_batch(critics, path):
    x, t = torch.randn(MINIBATCHES, ROWS, INPUTS), torch.randn(MINIBATCHES, ROWS)
    np.savez(path, input=x.numpy(), target=t.numpy(), **results_of(critics, x, t))


def refused(programs, folder, path, python=sys.executable):
    """What standard error says of a refused import."""
    status, _, complained = run(f"{programs}/kappascope", "import", "--arch", f"{folder}/a.arch", "--map",
                                f"{folder}/m.map", "--batch", f"{folder}/b.npz", "-o", f"{folder}/none.h5", path, python=python)
    if status != 2 or len(complained.splitlines()) != 1 or os.path.exists(f"{folder}/none.h5"):
        sys.exit(f"{path}: expected exit status 2, one line and no file, found {status}\n{complained}")
    return complained


def trained(critics, x, t):
    """Adam after seven steps, and the loss as a function."""

    def loss():
        return sum(0.5 * ((critic(x)[..., 0] - t) ** 2).mean() for critic in critics.values())

    optimizer = torch.optim.Adam(critics.parameters(), lr=1e-3, betas=(0.8, 0.99), eps=1e-6)
    for _ in range(7):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    return optimizer, loss


def save_with_moments(programs, folder, critics, optimizer):
    """Writes the critics with Adam's state as adam.pt, and m.map."""
    lines = [line.replace("= q", "= critics.q") for line in MAP.splitlines() if "=" in line]
    lines += ["adam = 0.8 0.99 1e-6", "adam/step = optimizer.state.*.step"]
    saved = {"critics": critics.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(saved, f"{folder}/adam.pt")
    if torch.__version__.startswith("1."):  # which reads no numbers with weights_only=True
        if "a newer PyTorch" not in refused(programs, folder, f"{folder}/adam.pt"):
            sys.exit("expected a refusal with a way out")
        del saved["optimizer"]["param_groups"]
        torch.save(saved, f"{folder}/adam.pt")
    else:
        lines.append("ignore optimizer.param_groups.**")
    places = {name: i for i, (name, _) in enumerate(critics.named_parameters())}
    for line in MAP.splitlines()[1:-1]:
        array, source = line.split(" = ")
        own = [places[source.replace("q*", critic)] for critic in critics]
        for moment, key in (("m", "exp_avg"), ("v", "exp_avg_sq")):
            lines.append(f"adam/{moment}/{array} = " + " ".join(f"optimizer.state.{i}.{key}" for i in own))
    write(f"{folder}/m.map", "\n".join(lines))


def compare_preconditioned(programs, folder, critics):
    """Imports Adam's state beside the critics; D^-1/2 H D^-1/2 x against PyTorch's."""
    critics = copy.deepcopy(critics)
    x, t = torch.randn(MINIBATCHES, ROWS, INPUTS), torch.randn(MINIBATCHES, ROWS)
    optimizer, loss = trained(critics, x, t)
    np.savez(f"{folder}/b.npz", input=x.numpy(), target=t.numpy(), **results_of(critics, x, t))
    save_with_moments(programs, folder, critics, optimizer)
    checkpoint = import_and_analyze(programs, folder, f"{folder}/adam.pt")
    parameters = list(critics.parameters())
    vectors = [torch.randn_like(p) for p in parameters]
    roots = [((optimizer.state[p]["exp_avg_sq"] / (1 - 0.99**7)).sqrt() + 1e-6).sqrt() for p in parameters]
    gradient = torch.autograd.grad(loss(), parameters, create_graph=True)
    slope = sum((g * v / d).sum() for g, v, d in zip(gradient, vectors, roots))
    expected = [h / d for h, d in zip(torch.autograd.grad(slope, parameters), roots)]

    def flat(tensors):  # the modules have their arrays in the order of the file
        return np.concatenate([(a.t() if a.dim() == 2 else a).detach().numpy().ravel() for a in tensors])

    with h5py.File(f"{folder}/x.h5", "w") as file:
        file.attrs.update(format="kappascope-vector", version=1)
        file["vector"] = flat(vectors)[None]
    if os.path.exists(f"{folder}/y.h5"):
        os.unlink(f"{folder}/y.h5")
    succeed(f"{programs}/kappascope-analyze", "--quiet", "--operator", "preconditioned", "--apply", f"{folder}/x.h5",
            "--output", f"{folder}/y.h5", checkpoint)
    with h5py.File(f"{folder}/y.h5") as file:
        found = file["vector"][0]
    deviation = np.linalg.norm(found - flat(expected)) / np.linalg.norm(found)
    print(f"preconditioned product with imported moments: deviation {deviation:.1e}")
    if not deviation < 1e-12:
        sys.exit("expected a deviation of at most 1e-12")


def main():
    programs, folder, without = sys.argv[1:]
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float64)
    critics = torch.nn.ModuleDict({"q1": make_critic(), "q2": make_critic()})
    with torch.no_grad():  # layernorm starts with ones and zeros
        for parameter in critics.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    make_batch(critics, f"{folder}/b.npz")
    write(f"{folder}/a.arch", ARCH)
    write(f"{folder}/m.map", MAP)
    state = {**critics.state_dict(), "log_alpha": torch.zeros(1)}
    torch.save(state, f"{folder}/critic.pt")
    torch.save(state, f"{folder}/legacy", _use_new_zipfile_serialization=False)
    with zipfile.ZipFile(f"{folder}/baselines.zip", "w") as archive:
        archive.write(f"{folder}/critic.pt", "policy.pth")
        archive.writestr("data", "{}")
    for name in ("critic.pt", "legacy", "baselines.zip"):
        import_and_analyze(programs, folder, f"{folder}/{name}")
    compare_preconditioned(programs, folder, critics)
    make_batch(critics, f"{folder}/b.npz")
    write(f"{folder}/m.map", MAP)
    torch.jit.script(critics["q1"]).save(f"{folder}/script.pt")
    if "a program of TorchScript" not in refused(programs, folder, f"{folder}/script.pt"):
        sys.exit("expected that TorchScript is refused by its name")
    torch.save({"q1": critics["q1"]}, f"{folder}/module.pt")
    if "whose code is not run" not in refused(programs, folder, f"{folder}/module.pt"):
        sys.exit("expected that a pickled module is refused")
    line = re.search("python3 (-c .*)", refused(programs, folder, f"{folder}/critic.pt", without)).group(1)
    status, _, complained = run("sh", "-c", f"'{sys.executable}' {line}")
    if status != 0:
        sys.exit(f"{line}: {complained}")
    os.replace("critic.npz", f"{folder}/critic.npz")
    import_and_analyze(programs, folder, f"{folder}/critic.npz")
    write(f"{folder}/m.map", MAP.replace("torch", "flax"))  # fits, but for the last layer
    if "as the other layout has it" not in refused(programs, folder, f"{folder}/critic.npz"):
        sys.exit("expected that the other layout is refused")


main()
