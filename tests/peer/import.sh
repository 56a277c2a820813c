#!/bin/sh
# Usage: tests/peer/import.sh
#
# Imports files that NumPy, safetensors, h5py, Flax (import_flax.py) and PyTorch (import_torch.py) wrote. The
# checkpoints must have the same numbers, and the outputs, losses and gradients that the frameworks computed.
#
# Environment: PYTHON, one with PyTorch (default: python3 or Debian's, with python3-torch); BUILD (build).
# Flax and safetensors are installed in the virtual environment of JAX under BUILD, or in one of their own.
set -eu
cd "$(dirname "$0")/../.."

. tests/peer/common.sh
folder=$build/peer/import
export PYTHONDONTWRITEBYTECODE=1 JAX_PLATFORMS=cpu JAX_ENABLE_X64=1

find_flax() {
    for flax in "$build"/peer/jax-*/bin/python; do
        if "$flax" -c 'import flax, h5py' 2>/dev/null; then
            return
        fi
    done
    flax=$build/peer/flax/bin/python
    [ -x "$flax" ] || python3 -m venv "$build/peer/flax"
}

find_python 'torch, numpy' python3-torch
find_flax
"$flax" -c 'import flax, h5py, safetensors' 2>/dev/null ||
    "$flax" -m pip install --quiet --disable-pip-version-check --only-binary=:all: flax h5py safetensors
build_here programs
rm -rf "$folder"
mkdir -p "$folder"
"$flax" tests/peer/import_flax.py "$build/bin" "$folder"
"$python" tests/peer/import_torch.py "$build/bin" "$folder" "$(cd "$(dirname "$flax")" && pwd)/python"
