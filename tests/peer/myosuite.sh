#!/bin/sh
# Usage: tests/peer/myosuite.sh
#
# Compares the tasks of MyoSuite with MyoSuite's own Python, step by step: records start states, episodes of
# random actions and forced states there and replays them with KappaScope, with the same version of MuJoCo.
# Prints a row per task, see tests/peer/replay.c. Does nothing unless the models are installed, by
# `make deps-myosuite` or with MYOSUITE_DIR.
#
# Environment: BUILD, the folder of programs and Python environments (build); PYTHON, one for which these
# versions have wheels (python3).
set -eu
cd "$(dirname "$0")/../.."

. tests/peer/common.sh

if [ ! -d "${MYOSUITE_DIR:-build/deps/myosuite}" ]; then
    echo "myosuite.sh: skipped: there are no models of MyoSuite; 'make deps-myosuite' installs them"
    exit 0
fi
build_here "$build/peer/replay"
mujoco=$("$build/peer/replay")
folder=$build/peer/mujoco-$mujoco-myosuite-$(version MyoSuite)
if [ ! -f "$folder/ready" ]; then
    make_venv "mujoco==$mujoco" "dm_control==$(version dm_control)" "gymnasium==$(version gymnasium)" 'numpy<2' \
        termcolor flatten-dict packaging
    rm "$folder/ready"
    # MyoSuite asks for MuJoCo 3.1.2, and for packages that its tasks do not need: --no-deps.
    pin MyoSuite >"$folder/pin"
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --only-binary=:all: --no-deps --require-hashes \
        --requirement "$folder/pin" || die "cannot install MyoSuite (see pip's messages above)"
    touch "$folder/ready"
fi

tasks=$("$build/peer/replay" --tasks myosuite)
set --
for task in $tasks; do
    set -- "$@" "$task:20"
done
echo "recording with MyoSuite $(version MyoSuite), MuJoCo $mujoco" >&2
"$folder/venv/bin/python" tests/peer/myosuite_record.py "$folder" 1 100 100 "$@" >&2
# shellcheck disable=SC2086 # a list of words
replay $tasks
