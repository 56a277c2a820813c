#!/bin/sh
# Usage: HUMANOID_BENCH_DIR=DIR tests/peer/humanoid_bench.sh
#
# Compares the tasks of HumanoidBench with HumanoidBench's own classes in DIR, a checkout of
# github.com/carlosferrazza/humanoid-bench, commit 791405f, step by step: records start states, forced
# states and episodes of random actions there and replays them with KappaScope, with the same version of
# MuJoCo. Prints a row per task, see tests/peer/replay.c. It is an error if an episode ends elsewhere, an
# observation differs by a bit, or a reward by more than 1e-13. Without HUMANOID_BENCH_DIR nothing is compared.
#
# Environment: BUILD, the folder of programs and Python environments (build); PYTHON, one for which these
# versions have wheels (python3); TASKS, the tasks (all).
set -eu
cd "$(dirname "$0")/../.."

. tests/peer/common.sh
gymnasium=0.29.1 dm_control=1.0.20 # those of HumanoidBench's setup.py; dm_control for `tolerance`

if [ -z "${HUMANOID_BENCH_DIR:-}" ]; then
    echo "humanoid_bench.sh: skipped: HUMANOID_BENCH_DIR is not set"
    exit 0
fi
[ -f "$HUMANOID_BENCH_DIR/humanoid_bench/env.py" ] ||
    die "HUMANOID_BENCH_DIR: no $HUMANOID_BENCH_DIR/humanoid_bench/env.py"

build_here "$build/peer/replay"
mujoco=$("$build/peer/replay")
folder=$build/peer/mujoco-$mujoco-humanoid-bench
# imageio, which importing the environments needs, though nothing is drawn here
make_venv "mujoco==$mujoco" "gymnasium==$gymnasium" "dm_control==$dm_control" 'numpy<2' imageio

tasks=${TASKS:-$("$build/peer/replay" --tasks humanoid-bench)}
set --
for task in $tasks; do # with random actions most robots fall within 100 steps
    case $task in
    h1-crawl-* | h1-reach-*) set -- "$@" "$task:4" ;; # which go on for 1,000
    *) set -- "$@" "$task:20" ;;
    esac
done
echo "recording with HumanoidBench, MuJoCo $mujoco" >&2
"$folder/venv/bin/python" tests/peer/humanoid_bench_record.py "$folder" 1 200 1000 "$@"
# shellcheck disable=SC2086 # a list of words
replay $tasks >"$folder/rows" || {
    cat "$folder/rows"
    exit 1
}
cat "$folder/rows"
awk '/^h1-/ && ($6 != 0 || $7 > 1e-13 || $10 > 1e-13) { print "humanoid_bench.sh: " $1 ": differs"; bad = 1 }
    END { exit bad }' "$folder/rows" >&2
