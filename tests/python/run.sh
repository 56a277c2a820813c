#!/bin/sh
# Usage: tests/python/run.sh [TEST...]
#
# The tests of the Python package analysis/python, by unittest, with the programs in $KS_BIN (build/bin).
# Skipped (status 77) where no Python has NumPy and h5py. Environment: PYTHON, the Python to use.
set -eu
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
KAPPASCOPE_PROGRAMS=$(cd "$root" && cd "${KS_BIN:-build/bin}" && pwd)
export KAPPASCOPE_PROGRAMS PYTHONPATH="$root/analysis/python:$root/tests/python" PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1

# A library with the sanitizers needs their library first in the process, and that of C++ (whose
# exceptions PyTorch throws) before Python itself. A test expects a script to die by its signal.
asan=$(ldd "$KAPPASCOPE_PROGRAMS"/../lib/libkappascope.so.* 2>/dev/null | awk '/libasan/ { print $3 }')
if [ -n "$asan" ]; then
    export LD_PRELOAD="$asan libstdc++.so.6" ASAN_OPTIONS=detect_leaks=0:handle_segv=0
fi

for python in ${PYTHON:-python3 /usr/bin/python3}; do
    if "$python" -c 'import numpy, h5py' 2>/dev/null; then
        [ $# -gt 0 ] || set -- discover
        exec "$python" -m unittest "$@"
    fi
done
echo "tests/python: skipped: no Python with NumPy and h5py (install python3-numpy and python3-h5py)" >&2
exit 77
