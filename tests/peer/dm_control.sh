#!/bin/sh
# Usage: tests/peer/dm_control.sh [DM_CONTROL_VERSION]
#
# Compares the environments with dm_control's own Python, step by step: records episodes of random
# actions there, replays them here, both with the libmujoco in use and with dm_control's models. Makes
# its own Python environment under build/peer. The default is the pinned dm_control; a newer MuJoCo in
# MUJOCO_DIR needs a newer one (1.0.34 or so goes with 3.3.7).
#
# EPISODES (5) is the number of dog-trot episodes, BUILD (build) where the programs are.
set -eu
cd "$(dirname "$0")/../.."

build=${BUILD:-build}
pinned=$(sed -n 's/^dm_control==\([^ ]*\).*/\1/p' src/deps/wheels.txt)
version=${1:-$pinned}
steps=1000

make --no-print-directory deps
make --no-print-directory BUILD="$build" "$build/peer/replay"
mujoco=$("$build/peer/replay")
folder=$build/peer/mujoco-$mujoco-dm_control-$version
python=$folder/venv/bin/python

if [ ! -f "$folder/ready" ]; then
    mkdir -p "$folder"
    python3 -m venv "$folder/venv" ||
        { echo "dm_control.sh: python3 cannot make a virtual environment: install python3-venv" >&2; exit 1; }
    # dm_control before 1.0.22 asks NumPy for np.array(copy=False) in a way that NumPy 2 refuses.
    case $version in
    1.0.1? | 1.0.2[01]) numpy='numpy<2' ;;
    *) numpy=numpy ;;
    esac
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --only-binary=:all: \
        "mujoco==$mujoco" "dm_control==$version" "$numpy"
    touch "$folder/ready"
fi

# The models of that very dm_control.
DM_CONTROL_DIR=$("$python" -c 'import importlib.util, os
print(os.path.dirname(importlib.util.find_spec("dm_control").origin))')
export DM_CONTROL_DIR

record() { # TASK EPISODES SEED
    echo "recording $1 with dm_control $version, MuJoCo $mujoco" >&2
    "$python" tests/peer/dm_control_record.py "$1" "$2" $steps "$3" "$folder/$1.trajectory"
}

record dog-trot "${EPISODES:-5}" 1
record dog-stand 1 2
record dog-walk 1 3
record dog-run 1 4
"$build/peer/replay" "$folder"/*.trajectory
