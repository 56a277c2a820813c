"""State_dicts of PyTorch, imported as they are, and by a Python without PyTorch, which refuses them, after the line
of Python in its message has converted them: python import_torch.py PROGRAMS FOLDER PYTHON_WITHOUT_TORCH"""

import os
import re
import sys
import zipfile

import numpy as np
import torch

from import_common import import_and_analyze, run, write

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


def make_batch(critics, path):
    x, t = torch.randn(MINIBATCHES, ROWS, INPUTS), torch.randn(MINIBATCHES, ROWS)
    outputs, losses, norms = [], [], []
    for n in range(MINIBATCHES):
        f = torch.stack([critic(x[n]) for critic in critics.values()], 1)  # [ROWS, critics, 1]
        loss = 0.5 * ((f[..., 0] - t[n][:, None]) ** 2).mean(0).sum()
        gradient = torch.autograd.grad(loss, critics.parameters())
        outputs.append(f.detach().numpy())
        losses.append(loss.item())
        norms.append(sum((g**2).sum().item() for g in gradient) ** 0.5)
    np.savez(path, input=x.numpy(), target=t.numpy(), output=np.stack(outputs), loss=losses, gradient_norm=norms)


def refused(programs, folder, path, python=sys.executable):
    """What standard error says of a refused import."""
    status, _, complained = run(f"{programs}/kappascope", "import", "--arch", f"{folder}/a.arch", "--map",
                                f"{folder}/m.map", "--batch", f"{folder}/b.npz", "-o", f"{folder}/none.h5", path, python=python)
    if status != 2 or len(complained.splitlines()) != 1 or os.path.exists(f"{folder}/none.h5"):
        sys.exit(f"{path}: expected exit status 2, one line and no file, found {status}\n{complained}")
    return complained


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
