#!/bin/sh
# Usage: tests/peer/layers.sh [NAME...]
#
# Compares every kind of layer and loss that a description may have with PyTorch, in float64: loss, gradient,
# products with the Hessian, the Gauss-Newton matrix and its relatives, the noise of the minibatches' gradients, and
# the loss along Adam's step, of the critics in layers.py, or of those named.
#
# Environment: TORCH, a Python with PyTorch and h5py (default: the distribution's python3-torch and
# python3-h5py, which are installed if missing); BUILD (default: build).
set -eu
cd "$(dirname "$0")/../.."

build=${BUILD:-build}
. src/deps/apt.sh

find_torch() { # sets torch: a Python that has PyTorch and h5py
    for torch in ${TORCH:-python3 /usr/bin/python3}; do
        ! "$torch" -c 'import torch, h5py' 2>/dev/null || return 0
    done
    return 1
}

if ! find_torch; then
    apt_get update || true
    apt_get install -y --no-install-recommends python3-torch python3-h5py
    find_torch
fi
make --silent deps
make --silent BUILD="$build" "$build/bin/kappascope-analyze"
mkdir -p "$build/peer/layers"
exec "$torch" tests/peer/layers.py "$build/bin/kappascope-analyze" "$build/peer/layers" "$@"
