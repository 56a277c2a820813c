#!/bin/sh
# Usage: tests/peer/gymnasium.sh
#
# Compares the tasks of Gymnasium with Gymnasium's own v4 environments, step by step: records start states
# and episodes of random actions there and replays them with KappaScope, with the same version of MuJoCo.
# Prints a row per task, see tests/peer/replay.c.
#
# Environment: BUILD, the folder of programs and Python environments (build); PYTHON, one for which these
# versions have wheels (python3).
set -eu
cd "$(dirname "$0")/../.."

. tests/peer/common.sh

build_here "$build/peer/replay"
mujoco=$("$build/peer/replay")
version=$(version gymnasium)
folder=$build/peer/mujoco-$mujoco-gymnasium-$version
# imageio, which importing the environments needs, though nothing is drawn here
make_venv "mujoco==$mujoco" "gymnasium==$version" 'numpy<2' imageio

tasks=$("$build/peer/replay" --tasks gymnasium)
set --
for task in $tasks; do # with random actions most robots fall within 100 steps
    case $task in
    HalfCheetah-* | HumanoidStandup-*) set -- "$@" "$task:2" ;;
    *) set -- "$@" "$task:20" ;;
    esac
done
echo "recording with gymnasium $version, MuJoCo $mujoco" >&2
"$folder/venv/bin/python" tests/peer/gymnasium_record.py "$folder" 1 100 1000 "$@"
# shellcheck disable=SC2086 # a list of words
replay $tasks
