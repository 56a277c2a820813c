#!/bin/sh
# Usage: tests/peer/notebook.sh [write]
#
# Executes analysis/examples/critic.ipynb anew and compares its outputs with the stored ones (notebook.py); write:
# stores the new ones. Uses an installed PyTorch, with matplotlib and nbclient in a Python environment under BUILD/peer.
#
# Environment: TORCH, BUILD, as for tests/bench/peer/run.sh.
set -eu
cd "$(dirname "$0")/../.."

. tests/peer/common.sh
python=
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 PYTHONPATH="$PWD/analysis/python"

. tests/bench/peer/frameworks.sh
find_torch || install_torch
build_here programs
KAPPASCOPE_PROGRAMS=$(cd "$build/bin" && pwd)
export KAPPASCOPE_PROGRAMS

environment=$build/peer/notebook
if [ ! -f "$environment/ready" ]; then
    "$torch" -m venv --clear "$environment" || die "$torch cannot create a virtual environment: install python3-venv"
    "$torch" -c 'import numpy; print("numpy==" + numpy.__version__)' >"$environment/constraints"
    "$environment/bin/pip" install --quiet --disable-pip-version-check --only-binary=:all: \
        --constraint "$environment/constraints" matplotlib nbclient ipykernel ||
        die "cannot install matplotlib, nbclient and ipykernel (see pip's messages above)"
    # The packages that PyTorch has, after the environment's own; NumPy stays as it is.
    "$torch" -c 'import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))' \
        >"$("$environment/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch.pth"
    touch "$environment/ready"
fi
exec "$environment/bin/python" tests/peer/notebook.py analysis/examples/critic.ipynb "$@"
