#!/bin/sh
# Usage: tests/peer/update.sh [full] [ARCHITECTURE...]
#
# Compares gradient updates of the twelve agents (or of those named) with PyTorch's, by automatic
# differentiation, for the same parameters, minibatches and noise (update.c, update.py,
# update_compare.py). Prints the deviations after 1, 10 and 100 updates, and fails if they exceed their
# bounds. Networks are small, which takes about a minute; with `full` they are as in the study, one
# architecture at a time, which takes an hour, 1 GB of disk and 2 GB of memory. Without `full`, also
# compares the systems of configs/systems, with narrow layers, in float64 (systems.py, mrq.py), and the losses
# and targets of analysis/LOSSES.md (losses.py), in half a minute.
#
# Environment: UPDATES (100), SETTINGS of the float32 agents (none; such as products=split3), BUILD
# (build), PYTHON, one with PyTorch and h5py (default: python3 or Debian's, with python3-torch and
# python3-h5py).
set -eu
cd "$(dirname "$0")/../.."

. tests/peer/common.sh
updates=${UPDATES:-100}
folder=$build/peer/updates
export OMP_WAIT_POLICY=passive

# The float64 agents start shaken, so that every term matters; the float32 agents as in a run.
compare() { # ARCHITECTURE...
    rm -rf "$folder"
    mkdir -p "$folder"
    # shellcheck disable=SC2086
    "$build/peer/update" "$folder/float64" shaken "$updates" "$@" $sizes
    # shellcheck disable=SC2086
    "$build/peer/update.f32" "$folder/float32" fresh "$updates" "$@" $sizes
    PYTHONDONTWRITEBYTECODE=1 "$python" tests/peer/update_compare.py "$folder/float64" \
        "$folder/float32" "$@"
}

# The systems with narrow layers: only then are PyTorch's updates and the files small.
compare_systems() {
    narrow=$folder/narrow
    rm -rf "$folder"
    mkdir -p "$narrow/arch" "$narrow/systems"
    for file in configs/arch/*.arch configs/systems/*; do
        sed -E 's/dense 2048/dense 24/; s/dense 512/dense 16/; s/dense 578/dense 82/
            s/dense (256|128)/dense 8/; s/gradient_norm = 20/gradient_norm = 1/' "$file" \
            >"$narrow/${file#configs/}"
    done
    # With a temperature of 1, most differences of BRO's quantiles would be in the linear part of its loss, whose
    # derivative does not depend on the target.
    sed -i 's/^temperature = 1$/temperature = 1e-5/' "$narrow/systems/bro.system"
    rm "$narrow"/systems/drqv2*.system "$narrow"/systems/xqc-pixels*.system # pixels.sh compares these
    mv "$narrow/systems/mrq.system" "$narrow/mrq.own" # the only one with an encoder
    "$build/peer/update" "$folder/float64" shaken "$updates" "$narrow"/systems/*.system batch=32
    PYTHONDONTWRITEBYTECODE=1 "$python" tests/peer/systems.py "$folder/float64" \
        "$narrow"/systems/*.system
    mv "$narrow/mrq.own" "$narrow/systems/mrq.system"
    "$build/peer/mrq" "$folder/mrq.h5" "$narrow/systems/mrq.system" "$updates"
    PYTHONDONTWRITEBYTECODE=1 "$python" tests/peer/mrq.py "$folder/mrq.h5" \
        "$narrow/systems/mrq.system"
}

find_python 'torch, h5py' 'python3-torch and python3-h5py'
build_here "$build/peer/update" "$build/peer/update.f32" "$build/peer/mrq" "$build/bin/kappascope-analyze"

full=
if [ "${1:-}" = full ]; then
    full=1
    shift
fi
[ $# -gt 0 ] || set -- bn+wn+ce bn+ce bn+wn+mse bn+mse ln+wn+ce ln+ce ln+wn+mse ln+mse \
    dense+wn+ce dense+ce dense+wn+mse dense+mse
if [ -z "$full" ]; then
    sizes="hidden=24 actor_hidden=16 batch=32 ${SETTINGS:-}"
    compare "$@"
    compare_systems
    PYTHONDONTWRITEBYTECODE=1 "$python" tests/peer/losses.py "$build/bin/kappascope-analyze"
    exit
fi
sizes=${SETTINGS:-}
status=0
for architecture in "$@"; do
    compare "$architecture" || status=1
done
exit $status
