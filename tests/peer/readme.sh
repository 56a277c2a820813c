#!/bin/sh
# Usage: tests/peer/readme.sh
#
# Checks the documentation against the programs: readme.py. Runs a small study for it, and the
# commands of its pages, in BUILD/peer/readme. Uses the installed h5py (python3-h5py), or makes a Python environment for it
# under BUILD/peer, as h5py.sh does.
set -eu
cd "$(dirname "$0")/../.."

. tests/peer/common.sh
folder=$build/peer/readme
build_here programs
rm -rf "$folder"
mkdir -p "$folder"
export PYTHONDONTWRITEBYTECODE=1
find_h5py
exec "$python" tests/peer/readme.py "$build/bin" "$folder"
