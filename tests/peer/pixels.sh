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

build=${BUILD:-build}
folder=$build/peer/pixels-updates
for python in ${PYTHON:-python3 /usr/bin/python3} none; do
    if [ "$python" = none ]; then
        echo "pixels.sh: no Python with PyTorch and h5py: install python3-torch and python3-h5py, or set PYTHON to one" \
            "that has them" >&2
        exit 1
    elif "$python" -c 'import torch, h5py' 2>/dev/null; then
        break
    fi
done
make --no-print-directory deps >&2
make --no-print-directory BUILD="$build" "$build/peer/pixels" >&2
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
