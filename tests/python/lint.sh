#!/bin/sh
# Usage: tests/python/lint.sh
#
# Checks the Python package with mypy --strict, and it and its tests with ruff: rules and format. Both are installed,
# with NumPy, in a virtual environment under BUILD (build). Environment: PYTHON, which makes it.
set -eu
cd "$(dirname "$0")/../.."

mypy=2.4.1 ruff=0.17.6 numpy=2.3.5
environment=$PWD/${BUILD:-build}/lint-$mypy-$ruff-$numpy
if [ ! -f "$environment/ready" ]; then
    "${PYTHON:-python3}" -m venv "$environment"
    "$environment/bin/pip" install --quiet --disable-pip-version-check --only-binary=:all: "mypy==$mypy" "ruff==$ruff" \
        "numpy==$numpy"
    touch "$environment/ready"
fi
PATH=$environment/bin:$PATH
cd analysis/python
mypy --strict --cache-dir "$environment/cache"
ruff check --no-cache --config pyproject.toml . ../examples ../../tests/python
ruff format --no-cache --check --config pyproject.toml . ../examples ../../tests/python
