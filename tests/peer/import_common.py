"""What import_flax.py and import_torch.py share."""

import os
import subprocess
import sys


def run(*command, python=sys.executable):
    """Exit status, standard output, standard error. python: what `kappascope import` finds as python3."""
    environment = os.environ | {"PATH": f"{os.path.dirname(python)}:{os.environ['PATH']}"}
    done = subprocess.run(command, check=False, text=True, capture_output=True, env=environment)
    return done.returncode, done.stdout, done.stderr


def succeed(*command):
    status, printed, complained = run(*command)
    if status != 0:
        sys.exit(f"{' '.join(command)}: exit status {status}\n{complained}")
    return printed


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def import_and_analyze(programs, folder, weights, *options):
    """Imports weights by a.arch, m.map and b.npz of the folder; the checkpoint, which the analyzer accepts."""
    checkpoint = f"{folder}/c.h5"
    listing = succeed(f"{programs}/kappascope", "import", "--arch", f"{folder}/a.arch", "--map", f"{folder}/m.map",
                      "--batch", f"{folder}/b.npz", "-o", checkpoint, weights, *options)
    proofs = ("output", "loss", "gradient_norm")
    if any(f"{name}: equal to what is computed here" not in listing for name in proofs):
        sys.exit(f"{weights}: expected that output, loss and gradient_norm were compared, found\n{listing}")
    succeed(f"{programs}/kappascope-analyze", "--quiet", "--order", "3", "--out", folder, checkpoint)
    print(f"{weights}: ok")
    return checkpoint
