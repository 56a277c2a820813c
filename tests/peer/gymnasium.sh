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

build=${BUILD:-build}
python=${PYTHON:-python3}

die() {
    echo "gymnasium.sh: $*" >&2
    exit 1
}

make --no-print-directory deps >&2
make --no-print-directory BUILD="$build" "$build/peer/replay" >&2
mujoco=$("$build/peer/replay")
version=$(sed -n 's/^gymnasium==\([^ ]*\).*/\1/p' src/deps/wheels.txt)
folder=$build/peer/mujoco-$mujoco-gymnasium-$version
if [ ! -f "$folder/ready" ]; then
    mkdir -p "$folder"
    "$python" -m venv "$folder/venv" ||
        die "$python cannot create a virtual environment: install python3-venv"
    # imageio, which importing the environments needs, though nothing is drawn here
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --only-binary=:all: \
        "mujoco==$mujoco" "gymnasium==$version" 'numpy<2' imageio ||
        die "cannot install mujoco $mujoco and gymnasium $version (see pip's messages above)"
    touch "$folder/ready"
fi

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
"$build/peer/replay" $(printf "$folder/%s.trajectory " $tasks)
