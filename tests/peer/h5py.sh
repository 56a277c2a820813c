#!/bin/sh
# Usage: tests/peer/h5py.sh
#
# Writes and reads checkpoints with h5py (h5py_checkpoint.py). Uses an installed h5py (python3-h5py), or
# else makes a virtual environment under build/peer.
set -eu
cd "$(dirname "$0")/../.."

build=${BUILD:-build}
folder=$build/peer/h5py
make --no-print-directory deps
make --no-print-directory BUILD="$build" "$build/tests/io/test_checkpoint"

for python in python3 /usr/bin/python3 "$folder/bin/python"; do
    if "$python" -c 'import h5py' 2>/dev/null; then
        exec "$python" tests/peer/h5py_checkpoint.py "$build/tests/io/test_checkpoint"
    fi
done
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check --only-binary=:all: h5py
exec "$folder/bin/python" tests/peer/h5py_checkpoint.py "$build/tests/io/test_checkpoint"
