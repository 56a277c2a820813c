#!/bin/sh
# Usage: tests/bench/peer/answers.sh [--programs NAMES] [--questions NAMES] [--batches N] CHECKPOINT...
#
# How many Hessian-vector products an answer costs: lambda_max to 1% (largest), directions_1e2 to a
# factor of 2 between its bounds (directions), the trace to 2% (trace), the share of negative eigenvalues
# to 0.02 (negative), and the ten eigenvectors of largest modulus to a relative residual of 0.001 (top);
# by KappaScope with --tolerance, by KappaScope with 90 steps (fixed), by SciPy's eigsh (which curvlinops
# calls), PRIMME, and, where PyTorch is installed, hessian-eigenthings and PyHessian. All of them multiply
# by the same operator, so that only their iterations differ; the errors are those against much longer
# iterations in float64, the number of directions against Ritz values that have converged. --batches: with the
# first N minibatches of each checkpoint only.
#
# Environment: PYTHON, with which a virtual environment is made under BUILD (defaults: python3, build). It uses
# the system's PyTorch, if PYTHON has one.
set -eu
cd "$(dirname "$0")/../../.."

build=${BUILD:-build}
environment=$build/peer/answers
if [ ! -f "$environment/ready" ]; then
    "${PYTHON:-python3}" -m venv --system-site-packages "$environment"
    # PyTorch of Debian 12 was compiled for NumPy 1.
    "$environment/bin/pip" install --quiet --disable-pip-version-check "numpy<2" scipy h5py primme==3.2.3
    "$environment/bin/pip" install --quiet --disable-pip-version-check --no-deps PyHessian==0.1 \
        hessian-eigenthings==1.0.0a5 tqdm
    touch "$environment/ready"
fi
make --silent deps
make --silent BUILD="$build" programs libraries
PYTHONDONTWRITEBYTECODE=1 exec "$environment/bin/python" tests/bench/peer/answers.py --build "$build" "$@"
