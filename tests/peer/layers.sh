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

. tests/peer/common.sh
. tests/bench/peer/frameworks.sh
find_torch || install_torch
build_here "$build/bin/kappascope-analyze"
mkdir -p "$build/peer/layers"
exec "$torch" tests/peer/layers.py "$build/bin/kappascope-analyze" "$build/peer/layers" "$@"
