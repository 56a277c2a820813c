#!/bin/sh
# Usage: tests/peer/readme.sh
#
# Checks the documentation against the programs: readme.py. Runs a small study for it, and the
# commands of its pages, in BUILD/peer/readme. Uses the installed h5py (python3-h5py), or makes a Python environment for it
# under BUILD/peer, as h5py.sh does.
set -eu
cd "$(dirname "$0")/../.."

build=${BUILD:-build}
folder=$build/peer/readme
make --no-print-directory deps
make --no-print-directory BUILD="$build" programs
rm -rf "$folder"
mkdir -p "$folder"
export PYTHONDONTWRITEBYTECODE=1

for python in python3 /usr/bin/python3 "$build/peer/h5py/bin/python"; do
    if "$python" -c 'import h5py' 2>/dev/null; then
        exec "$python" tests/peer/readme.py "$build/bin" "$folder"
    fi
done
python3 -m venv "$build/peer/h5py"
"$build/peer/h5py/bin/pip" install --quiet --disable-pip-version-check --only-binary=:all: h5py
exec "$build/peer/h5py/bin/python" tests/peer/readme.py "$build/bin" "$folder"
