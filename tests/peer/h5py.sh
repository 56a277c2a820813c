#!/bin/sh
# Usage: tests/peer/h5py.sh
#
# Writes and reads checkpoints with h5py (h5py_checkpoint.py). Uses an installed h5py (python3-h5py), or
# else makes a virtual environment under build/peer.
set -eu
cd "$(dirname "$0")/../.."

. tests/peer/common.sh
build_here "$build/tests/io/test_checkpoint"
find_h5py
exec "$python" tests/peer/h5py_checkpoint.py "$build/tests/io/test_checkpoint"
