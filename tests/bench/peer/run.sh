#!/bin/sh
# Usage: tests/bench/peer/run.sh [--quick] [--critics NAMES] [--minibatches N] [--rounds N]
#        tests/bench/peer/run.sh update [--quick] [--architectures NAMES] [--rounds N]
#
# Compares the Hessian-vector product (hvp.py) or a gradient update (update.py) with PyTorch and JAX, on
# the same numbers and in the same minutes. First compares the results, and fails if they disagree; then
# prints a table of times, each program with its fastest settings. Times never cause a failure, as they
# depend on other load; only their ratios matter. --quick: small networks and few rounds, for tests.
#
# Environment: TORCH, a Python with PyTorch and h5py (default: the distribution's python3-torch, which
# is installed if missing); PYTHON, with which a virtual environment for JAX is made under BUILD
# (defaults: python3, build).
set -eu
cd "$(dirname "$0")/../../.."

build=${BUILD:-build}
python=${PYTHON:-python3}
export PYTHONDONTWRITEBYTECODE=1
. tests/bench/peer/frameworks.sh

die() {
    echo "run.sh: $*" >&2
    exit 1
}

driver=hvp.py
programs=$build/bench/peer/product
if [ "${1:-}" = update ]; then
    driver=update.py
    programs="$build/bench/peer/cycle $build/peer/update $build/peer/update.f32"
    shift
fi
find_torch || install_torch
install_jax
make --silent deps
# shellcheck disable=SC2086
make --silent BUILD="$build" "$build/bin/kappascope-analyze" $programs
exec "$torch" "tests/bench/peer/$driver" --build "$build" --torch "$torch" \
    --jax "$environment/bin/python" "$@"
