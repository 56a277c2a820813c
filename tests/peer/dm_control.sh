#!/bin/sh
# Usage: tests/peer/dm_control.sh [MUJOCO_VERSION DM_CONTROL_VERSION]
#
# Compares all tasks with dm_control, step by step: records start states and episodes of random actions
# with dm_control and replays them with KappaScope, with the same libmujoco and dm_control's own models.
# Prints a row per task, see tests/peer/replay.c. Without arguments, uses the current MuJoCo and the pinned
# dm_control; with arguments, another matching pair (3.3.7 and 1.0.34, 3.17.0 and 1.0.49), for which
# everything is built again.
#
# Environment: BUILD, the folder of programs and Python environments (build); EPISODES, the number of
# episodes of dog-trot (5; other tasks have one); FRAMES, of how many states of each episode pictures are
# compared, too (0); PYTHON, one for which those versions have wheels (python3).
set -eu
cd "$(dirname "$0")/../.."

. tests/peer/common.sh
steps=1000
starts=100

build_replay() { # FOLDER
    make --no-print-directory deps >&2
    [ "${FRAMES:-0}" -eq 0 ] || make --no-print-directory deps-pixels >&2
    make --no-print-directory BUILD="$1" "$1/peer/replay" >&2
}

package() { # NAME: prints the folder of a Python package
    "$folder/venv/bin/python" -c 'import importlib.util, os, sys
print(os.path.dirname(os.path.abspath(importlib.util.find_spec(sys.argv[1]).origin)))' "$1"
}

case $# in
0)
    build_replay "$build"
    mujoco=$("$build/peer/replay")
    version=$(version dm_control)
    ;;
2) mujoco=$1 version=$2 ;;
*) die "usage: tests/peer/dm_control.sh [MUJOCO_VERSION DM_CONTROL_VERSION]" ;;
esac

folder=$build/peer/mujoco-$mujoco-dm_control-$version
# dm_control before 1.0.22 calls np.array(copy=False) in a way that NumPy 2 rejects, and 1.0.34 np.in1d, which NumPy 2.4
# does not have.
case $version in
1.0.[0-9] | 1.0.1? | 1.0.2[01]) numpy='numpy<2' ;;
1.0.3?) numpy='numpy<2.4' ;;
*) numpy=numpy ;;
esac
make_venv "mujoco==$mujoco" "dm_control==$version" "$numpy"
DM_CONTROL_DIR=$(package dm_control)
export DM_CONTROL_DIR
if [ $# -eq 2 ]; then
    MUJOCO_DIR=$(package mujoco)
    export MUJOCO_DIR
    build=$folder/build
    build_replay "$build"
    shift 2
fi

tasks=$("$build/peer/replay" --tasks dm_control)
for task in $tasks; do
    [ "$task" = dog-trot ] && set -- "$@" "$task:${EPISODES:-5}" || set -- "$@" "$task:1"
done
rm -f "$folder"/*.frames # of an earlier run
echo "recording with dm_control $version, MuJoCo $mujoco" >&2
"$folder/venv/bin/python" tests/peer/dm_control_record.py "$folder" 1 $starts $steps "$@"
# shellcheck disable=SC2086 # a list of words
replay $tasks
