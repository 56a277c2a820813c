#!/bin/sh
# Usage: [DRQV2_DIR=DIR] tests/peer/pixels.sh
#
# Compares gradient updates of the systems that see images, with narrow heads, with PyTorch's by automatic
# differentiation, for the same frames, shifts, parameters and noise (pixels.c, pixels.py), in float64; with DRQV2_DIR, a
# clone of github.com/facebookresearch/drqv2 at commit c0c650b, also with the authors' own class. Prints the deviations
# after 1, 10 and 100 updates, and fails if they exceed their bounds.
#
# Environment: UPDATES (10, a minute), BUILD (build), PYTHON, one with PyTorch and h5py (default: python3 or Debian's,
# with python3-torch and python3-h5py).
set -eu
cd "$(dirname "$0")/../.."

. tests/peer/common.sh
folder=$build/peer/pixels-updates
find_python 'torch, h5py' 'python3-torch and python3-h5py'
build_here "$build/peer/pixels"
rm -rf "$folder"
mkdir -p "$folder/arch" "$folder/systems"
for file in configs/arch/*.arch configs/systems/*; do
    sed -E 's/dense 1024/dense 24/; s/dense 50/dense 10/' "$file" >"$folder/${file#configs/}"
done
for system in drqv2 xqc-pixels; do
    authors=
    [ $system != drqv2 ] || authors=${DRQV2_DIR:-}
    "$build/peer/pixels" "$folder/$system.h5" "$folder/systems/$system.system" "${UPDATES:-10}"
    PYTHONDONTWRITEBYTECODE=1 "$python" tests/peer/pixels.py "$folder/$system.h5" "$folder/systems/$system.system" \
        ${authors:+"$authors"}
done
rm -rf "$folder"
