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

build=${BUILD:-build}
python=${PYTHON:-python3}
gymnasium=0.29.1 dm_control=1.0.20 # those of HumanoidBench's setup.py; dm_control for `tolerance`

die() {
    echo "humanoid_bench.sh: $*" >&2
    exit 1
}

if [ -z "${HUMANOID_BENCH_DIR:-}" ]; then
    echo "humanoid_bench.sh: skipped: HUMANOID_BENCH_DIR is not set"
    exit 0
fi
[ -f "$HUMANOID_BENCH_DIR/humanoid_bench/env.py" ] ||
    die "HUMANOID_BENCH_DIR: no $HUMANOID_BENCH_DIR/humanoid_bench/env.py"

make --no-print-directory deps >&2
make --no-print-directory BUILD="$build" "$build/peer/replay" >&2
mujoco=$("$build/peer/replay")
folder=$build/peer/mujoco-$mujoco-humanoid-bench
if [ ! -f "$folder/ready" ]; then
    mkdir -p "$folder"
    "$python" -m venv "$folder/venv" ||
        die "$python cannot create a virtual environment: install python3-venv"
    # imageio, which importing the environments needs, though nothing is drawn here
    "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --only-binary=:all: \
        "mujoco==$mujoco" "gymnasium==$gymnasium" "dm_control==$dm_control" 'numpy<2' imageio ||
        die "cannot install mujoco $mujoco, gymnasium $gymnasium and dm_control $dm_control (see pip's" \
            "messages above)"
    touch "$folder/ready"
fi

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
# shellcheck disable=SC2046,SC2086 # lists of words
"$build/peer/replay" $(printf "$folder/%s.trajectory " $tasks) >"$folder/rows" || {
    cat "$folder/rows"
    exit 1
}
cat "$folder/rows"
awk '/^h1-/ && ($6 != 0 || $7 > 1e-13 || $10 > 1e-13) { print "humanoid_bench.sh: " $1 ": differs"; bad = 1 }
    END { exit bad }' "$folder/rows" >&2
