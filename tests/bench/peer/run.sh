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
jax=0.10.2
environment=$build/peer/jax-$jax
export PYTHONDONTWRITEBYTECODE=1
. src/deps/apt.sh

die() {
    echo "run.sh: $*" >&2
    exit 1
}

has_torch() { "$1" -c 'import torch, h5py' 2>/dev/null; }

find_torch() { # sets torch: a Python that has PyTorch and h5py
    for torch in ${TORCH:-python3 /usr/bin/python3}; do
        ! has_torch "$torch" || return 0
    done
    return 1
}

install_torch() {
    [ -z "${TORCH:-}" ] || die "$TORCH does not have both PyTorch and h5py"
    command -v apt-get >/dev/null || die "install PyTorch and h5py, and set TORCH to their Python"
    echo "run.sh: installing python3-torch python3-h5py" >&2
    apt_get update || true
    apt_get install -y --no-install-recommends python3-torch python3-h5py ||
        die "apt-get could not install PyTorch and h5py (see its messages above): set TORCH" \
            "to a Python that has them"
    find_torch || die "PyTorch is installed, but neither python3 nor /usr/bin/python3 imports it"
}

install_jax() {
    [ ! -f "$environment/ready" ] || return 0
    "$python" -m venv "$environment" ||
        die "$python cannot create a virtual environment: install python3-venv"
    "$environment/bin/pip" install --quiet --disable-pip-version-check --only-binary=:all: \
        "jax==$jax" h5py ||
        die "cannot install JAX $jax (see pip's messages above): set PYTHON to a version for which it has" \
            "wheels"
    touch "$environment/ready"
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
